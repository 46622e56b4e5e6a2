/**
 * What is used of `node:http`. An `import` of that module reads all its exports. From Node 22 on, one of them loads the WebSocket
 * client and fetch of Node, which takes as long as the rest of the start (bench/README.md).
 */
export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http')
