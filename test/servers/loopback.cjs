// Loaded with --require before a server that has no option for its address: it listens on 127.0.0.1 then.
const { Server } = require('node:net')

const listen = Server.prototype.listen
Server.prototype.listen = function (...args) {
  const callbacks = args.filter(arg => typeof arg === 'function')
  const [first] = args
  const options = typeof first === 'object' && first !== null ? first : { port: Number(first) }
  return listen.call(this, { ...options, host: '127.0.0.1' }, ...callbacks)
}
