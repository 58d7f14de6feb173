/**
 * `node bench/logs.ts`: the cost of sending lines of the log to a collector. Two gateways take `--calls` chats in turns.
 * Both send traces to a collector in this process, one its lines as well. Prints how many lines came.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { chatInTurns } from './in-turns.ts';

/** Lines wait a second for others before they are sent. */
const SENT_MS = 1_500;

const { values } = parseArgs({ options: { calls: { type: 'string', default: '1500' } } });
let [posts, bytes, lines] = [0, 0, 0];
const collector = createServer((incoming, response) => {
  const parts: Buffer[] = [];
  incoming.on('data', (part: Buffer) => parts.push(part));
  incoming.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    if (incoming.url !== '/v1/logs') return;
    const body = Buffer.concat(parts);
    posts += 1;
    bytes += body.byteLength;
    lines += body.toString('latin1').split('"timeUnixNano"').length - 1;
  });
});
collector.listen(0, '127.0.0.1');
await once(collector, 'listening');
const { port } = collector.address() as AddressInfo;
try {
  await chatInTurns({
    settings: [
      `[telemetry]\notlp_endpoint = "http://127.0.0.1:${port}"\nlogs_exporter = "otlp"`,
      // It sends its traces, as the other one does.
      `[telemetry]\notlp_endpoint = "http://127.0.0.1:${port}"`,
    ],
    calls: Number(values.calls),
    afterMs: SENT_MS,
    words: 'with lines sent',
  });
} finally {
  collector.close();
  collector.closeAllConnections();
}
process.stdout.write(`${lines} lines in ${posts} posts, ${(bytes / Math.max(lines, 1)).toFixed(0)} bytes a line\n`);
