import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { startApp } from '../../helpers/start-app.ts'

it.for([
  ['without a key', {}],
  ['with a key', { server: { key: 'k3y-of-the-server' }, auth: { loopbackExempt: false } }],
] as const)('the example for curl works %s', async ([, config], context) => {
  needs(context, 'curl', 'curl')
  const app = await startApp({ config })
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'picture.png'), makePicture())
  const { body } = await ask(app.url, 'GET', '/')
  const code = /id="curl">.*?<pre><code>(.*?)<\/code>/s.exec(body)?.[1]?.replaceAll('&quot;', '"') ?? ''
  const env = { UPLOAD_KEY: 'k3y-of-the-server' }
  const { stdout } = await runProgram('sh', ['-c', code], { cwd, env })
  expect(JSON.parse(stdout)).toMatchObject({ success: true, result: [expect.stringContaining(app.url)] })
})
