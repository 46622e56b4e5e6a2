import { backup } from './backup/index.ts'
import { check } from './check/index.ts'
import { comment } from './comment/index.ts'
import { completion } from './completion/index.ts'
import { config } from './config/index.ts'
import type { Command } from './define.ts'
import { finalize } from './finalize/index.ts'
import { heartbeat } from './heartbeat/index.ts'
import { history } from './history/index.ts'
import { init } from './init/index.ts'
import { markdown } from './markdown/index.ts'
import { mcp } from './mcp/index.ts'
import { remove } from './remove/index.ts'
import { serve } from './serve/index.ts'
import { upload } from './upload/index.ts'

/** The commands, in the order in which the help lists them. */
export const COMMANDS: readonly Command[] = [
  serve,
  upload,
  comment,
  markdown,
  mcp,
  init,
  check,
  heartbeat,
  history,
  remove,
  finalize,
  backup,
  config,
  completion,
]
