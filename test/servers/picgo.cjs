// PicGo as its own package starts it: picgo.cjs PACKAGE FOLDER PORT. Files go nowhere, their addresses are made up.
const { join } = require('node:path')

const [packageFolder, folder, port] = process.argv.slice(2)
const { PicGo } = require(packageFolder)
const picgo = new PicGo(join(folder, 'config.json'))
for (const [type, host] of [
  ['nowhere', 'img.example'],
  ['elsewhere', 'other.example'],
]) {
  picgo.helper.uploader.register(type, {
    handle(context) {
      for (const one of context.output) one.imgUrl = `http://${host}/${encodeURIComponent(one.fileName)}`
      return context
    },
  })
}
picgo.setConfig({ picBed: { uploader: 'nowhere', current: 'nowhere', nowhere: {} } })
picgo.server.listen(Number(port), '127.0.0.1', true)
