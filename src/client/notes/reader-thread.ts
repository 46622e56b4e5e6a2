import { parentPort } from 'node:worker_threads'
import { findReferences } from './references.ts'

parentPort?.on('message', (note: string) => parentPort?.postMessage(findReferences(note)))
