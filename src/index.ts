export { ConfigError, type LoadedConfig, loadConfig } from './config/load.ts'
export { type ErrorCode, UploadError } from './errors.ts'
export { createLog } from './log.ts'
export { createMask } from './mask.ts'
export {
  defineProvider,
  type Provider,
  type Stored,
  type Target,
  type UploadObject,
} from './providers/contract.ts'
export { type AppDeps, type AppSettings, createApp } from './routes/app.ts'
export { type RunningServer, startServer } from './server/index.ts'
export { openUploader, type ServerDeps } from './server/open-uploader.ts'
export type { Uploader } from './uploader/app.ts'
export type { Caller, Input, Outcome } from './uploader/input.ts'
