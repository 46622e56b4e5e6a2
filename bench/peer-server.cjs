/**
 * PicGo or PicList, storing in a folder: peer-server.cjs picgo|piclist PACKAGE FOLDER PORT. Prints its URL as the first
 * line, and serves the stored files at another port.
 */
const { createReadStream, mkdirSync, writeFileSync } = require('node:fs')
const { writeFile } = require('node:fs/promises')
const { createServer } = require('node:http')
const { basename, join } = require('node:path')

const [kind, packageFolder, folder, port] = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
const files = createServer((req, res) => createReadStream(join(folder, basename(req.url))).pipe(res))
files.listen(0, '127.0.0.1', () => {
  const at = `http://127.0.0.1:${files.address().port}`
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }))
  const config = join(folder, '..', 'config.json')
  if (kind === 'piclist') {
    const local = { path: folder, customUrl: at }
    writeFileSync(config, JSON.stringify({ picBed: { uploader: 'local', current: 'local', local } }))
    process.argv.splice(2, 4, '-c', config, '-p', port, '--host', '127.0.0.1')
    require(join(packageFolder, 'bin/picgo-server'))
    return
  }
  const { PicGo } = require(packageFolder)
  const picgo = new PicGo(config)
  picgo.helper.uploader.register('folder', {
    async handle(context) {
      for (const one of context.output) {
        await writeFile(join(folder, one.fileName), one.buffer ?? Buffer.from(one.base64Image, 'base64'))
        one.imgUrl = `${at}/${one.fileName}`
      }
      return context
    },
  })
  picgo.setConfig({ picBed: { uploader: 'folder', current: 'folder', folder: {} } })
  picgo.server.listen(Number(port), '127.0.0.1', true)
})
