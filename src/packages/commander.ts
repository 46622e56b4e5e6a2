/**
 * The used part of commander. The build puts it into this one module: alone, commander is CommonJS, and the first module of that
 * kind that an ES module imports makes Node load its parser for exports.
 */
export { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
