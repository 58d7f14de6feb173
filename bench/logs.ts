/**
 * `node bench/logs.ts`: the cost of sending log lines to a collector. Two gateways handle `--calls` chats in turns.
 * Both send traces to a collector in this process, and one also sends its log lines. Prints the number of received
 * lines, and the cost of converting a call's line to an OTLP record. With `--calls 0` only the latter is measured.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { toLogRecord } from '../src/console/observe/otlp.ts';
import { chatInTurns, middle } from './in-turns.ts';

/** Lines wait up to a second for more lines before they are sent. */
const SENT_MS = 1_500;

/** Lines per request. */
const BATCH = 256;
const ROUNDS = 9;

const { values } = parseArgs({ options: { calls: { type: 'string', default: '1500' } } });
const calls = Number(values.calls);
makeRecords();
if (calls > 0) await sendLines();

/** The work for one request before it is sent, for the lines of calls. */
function makeRecords(): void {
  const line = JSON.stringify({
    level: 'info',
    time: 1_795_349_000_000,
    request: '3f2b7c1e-aaaa-4bbb-8ccc-1234567890ab',
    generation: 'gen-0123456789abcdef01234567',
    trace_id: '0af7651916cd43dd8448eb211c80319c',
    span_id: 'b7ad6b7169203331',
    account: 'tollgate:local:bench',
    key: '0123456789abcdef',
    primitive: 'model',
    service: 'bench/model',
    provider: 'bench',
    outcome: 'complete',
    status: 200,
    streamed: false,
    prompt_tokens: 9,
    completion_tokens: 2,
    cost_usd: '0.000013',
    duration_ms: 12.5,
    upstream_ms: 9.25,
    lock_ms: 1.25,
    settle_ms: 1.5,
    attempts: 1,
    msg: 'call',
  });
  const batch = Array.from({ length: BATCH }, () => `${line}\n`);
  const micros: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const before = process.cpuUsage();
    for (let posts = 0; posts < 40; posts += 1) Buffer.from(JSON.stringify(batch.map(toLogRecord)));
    const { user, system } = process.cpuUsage(before);
    if (round > 0) micros.push((user + system) / (40 * BATCH));
  }
  process.stdout.write(`a line of a call, made a record: ${middle(micros).toFixed(1)} µs of CPU\n`);
}

async function sendLines(): Promise<void> {
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
        // This gateway also sends its traces, like the other one.
        `[telemetry]\notlp_endpoint = "http://127.0.0.1:${port}"`,
      ],
      calls,
      afterMs: SENT_MS,
      words: 'with lines sent',
    });
  } finally {
    collector.close();
    collector.closeAllConnections();
  }
  process.stdout.write(`${lines} lines in ${posts} posts, ${(bytes / Math.max(lines, 1)).toFixed(0)} bytes a line\n`);
}
