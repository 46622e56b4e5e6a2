#!/usr/bin/env node
import '../dist/v8-settings.js'
import { main } from '../dist/cli.js'

await main(process.argv)
