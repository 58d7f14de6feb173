import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

// A server that passes requests on and does nothing else: `bare-passthrough.ts <provider>`. It prints its address, and
// ends when its input does. What a flood costs others beside it is what the flood costs the machine.

const [provider = ''] = process.argv.slice(2);
/** A body that does not arrive whole is answered after this time. */
const SILENT_MS = 5_000;

const server = createServer((incoming, response) => {
  const timer = setTimeout(() => response.writeHead(408, { connection: 'close' }).end(), SILENT_MS);
  const pieces: Buffer[] = [];
  let bytes = 0;
  const most = Number(incoming.headers['content-length']);
  incoming.on('data', (piece: Buffer) => {
    bytes += piece.byteLength;
    // A body that falls silent is not kept.
    if (most < 31_000_000) pieces.push(piece);
  });
  incoming.once('end', () => {
    clearTimeout(timer);
    const sent = request(`${provider}/chat/completions`, { method: 'POST', headers: { 'content-length': bytes } });
    sent.once('response', (answer) => {
      response.writeHead(answer.statusCode!);
      answer.pipe(response);
    });
    sent.once('error', () => response.destroy());
    for (const piece of pieces) sent.write(piece);
    sent.end();
  });
  incoming.once('error', () => clearTimeout(timer));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
