/**
 * The used part of zod. The build puts it into this one module: alone, zod loads 95 files, its messages in 50 languages
 * among them, and takes a sixth of the start.
 */

export type { infer, input, output, ZodRawShape } from 'zod'
export {
  array,
  boolean,
  config,
  email,
  enum,
  int,
  literal,
  looseObject,
  never,
  number,
  object,
  partialRecord,
  record,
  registry,
  strictObject,
  string,
  toJSONSchema,
  union,
  unknown,
  url,
  ZodArray,
  ZodBoolean,
  ZodDefault,
  ZodEnum,
  ZodError,
  ZodObject,
  ZodOptional,
  ZodPipe,
  ZodPrefault,
  ZodRecord,
  ZodString,
  ZodType,
  ZodUnion,
  ZodURL,
} from 'zod'
export { type $strict, type $ZodIssue, toDotPath } from 'zod/v4/core'
