import { IncomingMessage, ServerResponse } from 'node:http'

/** What an Express application puts behind each request and each answer. */
export interface Prototypes {
  readonly request: object
  readonly response: object
}

// Functions, not classes: the prototype of a class can't be replaced. Node's own can be called on what they did not make.
function Request(this: IncomingMessage, ...args: unknown[]): void {
  Reflect.apply(IncomingMessage, this, args)
}
function Response(this: ServerResponse, ...args: unknown[]): void {
  Reflect.apply(ServerResponse, this, args)
}
makeMessagesFor({ request: IncomingMessage.prototype, response: ServerResponse.prototype })

/**
 * For `createServer`. Before Node 24: requests and answers that have from birth the prototypes that Express gives to each by
 * `Object.setPrototypeOf`, which then changes nothing. Otherwise, the V8 of Node 20 and 22 compiles what touches them again and again:
 * an upload of 100 KB takes a quarter more processor time. From Node 24 on, Node's own, because others are slower there
 * (bench/README.md).
 */
export const MESSAGE_TYPES = (
  Number.parseInt(process.versions.node, 10) < 24
    ? { IncomingMessage: Request, ServerResponse: Response }
    : { IncomingMessage, ServerResponse }
) as {
  readonly IncomingMessage: typeof IncomingMessage
  readonly ServerResponse: typeof ServerResponse
}

/** Makes all later messages of this process for one application. Others answer them, too, but more slowly. */
export function makeMessagesFor({ request, response }: Prototypes): void {
  Request.prototype = request
  Response.prototype = response
}
