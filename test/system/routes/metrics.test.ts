import { statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { upload } from '../../helpers/form.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { startApp } from '../../helpers/start-app.ts'

describe('/metrics counts', () => {
  it('files that are not stored because the database cannot be written', async context => {
    const disk = join(await makeDirectory(), 'disk')
    await mountSmall(context, disk, '2m')
    const app = await startApp({
      config: { metrics: { enabled: true }, database: { path: join(disk, 'store.db') } },
    })
    const { bavail, bsize } = await statfs(disk)
    // The server may write meanwhile.
    await writeFile(join(disk, 'ballast'), Buffer.alloc(bavail * bsize)).catch(() => {})
    const { status } = await upload(`${app.url}/upload`, { 'a.txt': 'one', 'b.txt': 'two' })
    expect(status).toBe(507)
    const name = 'upload_server_file_failures_total{destination="local/Default",code="insufficient_storage"}'
    expect((await ask(app.url, 'GET', '/metrics')).body.split('\n')).toContain(`${name} 2`)
  })
})
