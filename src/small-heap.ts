import { setFlagsFromString } from 'node:v8'

// Keeps V8's space for new objects at its first size. It would grow with the traffic, and with it the buffers that wait
// to be collected: a large file would cost 30 MB more, and would be no faster for it.
setFlagsFromString('--semi-space-growth-factor=1')
