#!/usr/bin/env node
import '../dist/young-heap.js'
import { main } from '../dist/cli.js'

await main(process.argv)
