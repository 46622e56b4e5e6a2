"""httpbin with a page beside it, /store, that keeps uploads and hands them out again. Forms are parsed by werkzeug."""

import os
import sys
import uuid

from httpbin import app as httpbin
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response

FOLDER, PORT = sys.argv[1], int(sys.argv[2])


@Request.application
def store(request):
    if request.method == "GET":
        file = os.path.join(FOLDER, os.path.basename(request.path))
        return Response(open(file, "rb"), direct_passthrough=True) if os.path.exists(file) else Response(status=404)
    if request.args.get("key") != "a right key":
        return xml(403, f"<error code='7'>{request.args.get('key')} is no key</error>")
    upload = request.files.get("upload[]")
    if upload is None or request.form.get("album") != "holidays & more":
        return xml(400, f"<error>files {list(request.files)}, fields {dict(request.form)}</error>")
    name = uuid.uuid4().hex
    upload.save(os.path.join(FOLDER, name))
    link = f"{request.host_url}store/{name}"
    return xml(200, f"<file id='1'><link>{link}?a=1&amp;b=2</link><remove href='{link}/remove'/></file>")


def xml(status, content):
    text = f"<?xml version='1.0'?><!-- an answer --><x:answer xmlns:x='urn:x'>{content}</x:answer>"
    return Response(text, status=status, mimetype="application/xml")


if __name__ == "__main__":
    run_simple("127.0.0.1", PORT, DispatcherMiddleware(httpbin, {"/store": store}), threaded=True)
