import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { collectByChunks } from '../payload/garbage-collection.ts'

// For processes that do nothing but this: imported by what starts one, ahead of everything else, and never by what others
// import as a library, whose V8 is theirs.

// When little happens V8 collects what it can, and with objects that are gone it throws away the machine code that was
// compiled for their kind, that of nearly every request: the next ones take up to twice as long. So it does not collect
// for being idle, and remembers kinds of objects for longer than the two collections that are its default.
setFlagsFromString('--no-memory-reducer')
setFlagsFromString('--retain-maps-for-n-gc=1000')
// Its space for new objects stays as small as it is at first, until much has arrived: loading needs no more.
setFlagsFromString('--semi-space-growth-factor=1')

// V8 goes through all objects there are when they and what lies outside of its heap, as chunks do, have grown by a
// fraction of what there was: by 8 MB in a server of this size, which is every 40 uploads of 100 KB, and takes half of the
// processor time. Now it is two and a half times as much.
setFlagsFromString('--heap-growing-percent=250')

let collectNew: (() => void) | undefined
collectByChunks(() => {
  collectNew ??= prepare()
  collectNew()
})

function prepare(): () => void {
  setFlagsFromString('--semi-space-growth-factor=2') // V8's default
  setFlagsFromString('--expose-gc')
  const gc: (options: { type: 'minor' }) => void = runInNewContext('gc')
  return () => gc({ type: 'minor' })
}
