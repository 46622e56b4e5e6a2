import { startApp } from './start-app.ts'

/** Destinations of several kinds at one address. */
export function destinationsAt(origin: string, more: object = {}) {
  const urlPrefix = 'http://pictures.example'
  const keys = { accessKeyId: 'id', secretAccessKey: 's3cr3t-k3y' }
  const bucket = { bucket: 'b', region: 'r', addressingStyle: 'path' }
  return {
    http: { Default: { url: `${origin}/up`, resultUrl: 'data.url', ...more } },
    webdav: { Default: { url: `${origin}/dav`, username: 'me', password: 's3cr3t-k3y', ...more } },
    s3: { Default: { endpoint: origin, ...bucket, urlPrefix, ...keys, ...more } },
    gitea: { Default: { apiUrl: `${origin}/api/v1`, repo: 'o/r', token: 's3cr3t-k3y', ...more } },
    piclist: { Default: { url: origin, serverKey: 's3cr3t-k3y', ...more } },
  }
}
export const TYPES = Object.keys(destinationsAt(''))

/** A server that asks each of them once, and waits for none of them when it stops. */
export const startWith = (providers: object, destinationTimeoutMs = 10_000) =>
  startApp({
    config: {
      providers,
      default: 'http',
      limits: { retries: 0, destinationTimeout: `${destinationTimeoutMs}ms` },
      shutdown: { grace: '0ms' },
    },
  })
