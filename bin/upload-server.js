#!/usr/bin/env node
import '../dist/small-heap.js'
import { main } from '../dist/cli.js'

await main(process.argv)
