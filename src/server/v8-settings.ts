import { setFlagsFromString } from 'node:v8'

// For processes that do nothing but this: imported by what starts one, ahead of everything else, and never by what others
// import as a library, whose V8 is theirs.

// V8 goes through all objects there are when they and what lies outside of its heap, as chunks do, have grown by a
// fraction of what there was: by 8 MB in a server of this size, which is every 40 uploads of 100 KB. Without this an upload of
// 100 KB takes up to a fifth more processor time and one of 5 MB two thirds more (bench/README.md). A program that is started by its
// name has no place for options of Node, so it is set once it runs.
setFlagsFromString('--heap-growing-percent=250')
