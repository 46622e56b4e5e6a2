#!/usr/bin/env node
import '../dist/server/v8-settings.js'
import { main } from '../dist/cli/main.js'

await main(process.argv)
