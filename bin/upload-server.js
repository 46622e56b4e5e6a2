#!/usr/bin/env node
import '../dist/garbage-collection.js'
import { main } from '../dist/cli.js'

await main(process.argv)
