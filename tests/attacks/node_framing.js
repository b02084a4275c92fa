// Reads HTTP byte streams through Node's HTTP server (llhttp) and prints how it divides them into requests. Input and output
// are those of tests/programs/http_framing.cpp, with the request's target instead of path and query. No socket is opened: the
// server gets in-memory streams.
'use strict';

const http = require('node:http');
const readline = require('node:readline');
const { Duplex } = require('node:stream');

const hex = (text) => Buffer.from(text, 'latin1').toString('hex');

const server = http.createServer({ insecureHTTPParser: false, keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
  if (request.headers.upgrade !== undefined) {
    // Node does not report errors after a request for an upgrade.
    request.socket.framing.end = 'no verdict';
    request.socket.destroy();
    return;
  }
  const entry = { method: hex(request.method), target: hex(request.url), body: '', complete: false };
  request.socket.framing.requests.push(entry);
  request.on('data', (data) => { entry.body += data.toString('hex'); });
  request.on('error', () => {});
  request.on('end', () => {
    entry.complete = request.complete;
    response.end();
  });
});
server.on('clientError', (error, socket) => {
  if (socket.framing.end === 'end') socket.framing.end = 'refused';
  // The bodies of requests before the error are still on their way to the handlers above.
  setImmediate(() => setImmediate(() => socket.destroy()));
});

function framingOf(line) {
  return new Promise((resolve) => {
    const connection = new Duplex({ read() {}, write(data, encoding, done) { done(); } });
    connection.framing = { requests: [], end: 'end' };
    const limit = setTimeout(() => { connection.framing.end = 'stuck'; connection.destroy(); }, 2000);
    connection.on('error', () => {});
    connection.on('close', () => {
      clearTimeout(limit);
      const whole = connection.framing.requests.filter((entry) => entry.complete);
      resolve({ requests: whole.map(({ method, target, body }) => ({ method, target, body })), end: connection.framing.end });
    });
    server.emit('connection', connection);
    const pieces = line.split(' ').filter((piece) => piece !== '');
    const next = () => {
      if (connection.destroyed) return;
      const piece = pieces.shift();
      if (piece === undefined) {
        connection.push(null);
        return;
      }
      connection.push(Buffer.from(piece, 'hex'));
      setImmediate(next);
    };
    next();
  });
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await framingOf(line)) + '\n');
  }
  process.exit(0);
})();
