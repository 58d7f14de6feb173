/**
 * `node bench/images.ts`: by how much an image of 30 MiB delays others. 200 chat streams of one gateway are read, each
 * with a chunk every 50 ms. This alternates between rounds with and rounds without a client that requests one image
 * after the other. The result compares the gaps between the chunks of a stream, and the longest time that the gateway's
 * loop computed without a break, which doesn't depend on the machine's load. Both upstreams and the client of the
 * images run in separate threads. `--every` is the time from one image to the next, in milliseconds.
 *
 * `--route` requests the images through another route: chat, chat-stream, mcp, a2a or a2a-stream. `--against
 * src/main.ts` of another version of the gateway also measures that version in the same run, in turns.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { stallsAt, watchedAt } from '../test/support/loop-stalls.ts';
import { startProgram } from './program.ts';

const MIB = 1024 * 1024;
const STREAMS = 200;
const CHUNK_MS = 50;
const ROUND_MS = 5_000;
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

const ask = { messages: [{ role: 'user', content: 'A tollgate' }] };
const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'A tollgate' }] };
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

/** The requests for an image, by route. Each A2A request has a new id, because a repeat wouldn't run again. */
const ENDPOINTS: Readonly<Record<string, { readonly path: string; body(id: string): object }>> = {
  image: { path: '/api/v1/image/generate', body: () => ({ model: 'bench/paint', prompt: 'A tollgate' }) },
  chat: { path: '/api/v1/chat/completions', body: () => ({ model: 'image/bench/paint', ...ask }) },
  'chat-stream': {
    path: '/api/v1/chat/completions',
    body: () => ({ model: 'image/bench/paint', stream: true, ...ask }),
  },
  mcp: {
    path: '/mcp/image/bench/paint',
    body: () => rpc('tools/call', { name: 'generate_image', arguments: { prompt: 'A tollgate' } }),
  },
  a2a: {
    path: '/a2a/image/bench/paint',
    body: (messageId) => rpc('message/send', { message: { ...message, messageId } }),
  },
  'a2a-stream': {
    path: '/a2a/image/bench/paint',
    body: (messageId) => rpc('message/stream', { message: { ...message, messageId } }),
  },
};

interface Painter {
  readonly base: string;
  readonly key: string;
  readonly route: string;
  readonly everyMs: number;
}
type Work = { readonly mib: number } | Painter;

if (isMainThread) await run();
else if ('mib' in (workerData as Work)) await serve((workerData as { mib: number }).mib);
else askForImages(workerData as Painter);

async function run(): Promise<void> {
  const { values } = parseArgs({
    options: {
      mib: { type: 'string', default: '30' },
      rounds: { type: 'string', default: '3' },
      route: { type: 'string', default: 'image' },
      every: { type: 'string', default: '0' },
      against: { type: 'string' },
    },
  });
  const { route, against } = values;
  const everyMs = Number(values.every);
  if (!Object.hasOwn(ENDPOINTS, route)) throw new Error(`--route is one of ${Object.keys(ENDPOINTS).join(', ')}`);
  // Two upstreams, because one that writes 40 MB can't send chunks at the same time.
  const upstreams = [0, Number(values.mib)].map(
    (mib) => new Worker(new URL(import.meta.url), { workerData: { mib } satisfies Work }),
  );
  const [chat, paint] = await Promise.all(
    upstreams.map(async (upstream) => ((await once(upstream, 'message')) as [string])[0]),
  );
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const config = join(folder, 'gateway.toml');
  writeFileSync(config, configurationAt(chat!, paint!));
  const mains = [MAIN, ...(against === undefined ? [] : [resolve(against)])];
  const measured: Measured[] = [];
  try {
    for (const [index, main] of mains.entries())
      measured.push(await startMeasured(main, config, join(folder, String(index)), { route, everyMs }));
    for (let round = 0; round < Number(values.rounds); round += 1) for (const each of measured) await each.round();
    for (const each of measured) each.tell();
  } finally {
    await Promise.all(measured.map((each) => each.stop()));
    await Promise.all(upstreams.map((upstream) => upstream.terminate()));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A gateway under measurement, with its client of images. */
interface Measured {
  /** Measures once without and once with images. */
  round(): Promise<void>;
  tell(): void;
  stop(): Promise<void>;
}

async function startMeasured(
  main: string,
  config: string,
  data: string,
  { route, everyMs }: Pick<Painter, 'route' | 'everyMs'>,
): Promise<Measured> {
  mkdirSync(data);
  const socketPath = join(data, 'loop.sock');
  const gateway = startProgram([main, 'start', '--config', config, '--data', data, '--port', '0'], {
    env: watchedAt(socketPath),
  });
  const { base_url: base, api_key: key } = await gateway.until(() => readDev(data), 'it listens');
  const painter = new Worker(new URL(import.meta.url), { workerData: { base, key, route, everyMs } satisfies Work });
  let images = 0;
  painter.on('message', () => (images += 1));
  // Thrown when the gateway is stopped.
  let failure: Error | null = null;
  painter.on('error', (error: Error) => (failure = error));
  const lanes = ['without', 'with'].map(() => ({ gaps: [] as number[], computed: [] as number[] }));
  const [without, beside] = lanes as [(typeof lanes)[0], (typeof lanes)[0]];
  const read = async ({ gaps, computed }: typeof without) => {
    await stallsAt(socketPath);
    gaps.push(...(await readStreams(base, key)));
    computed.push((await stallsAt(socketPath)).cpuMs);
  };
  const row = (what: string, { gaps, computed }: typeof without) => {
    const sorted = gaps.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1).padStart(7);
    const own = computed.map((ms) => ms.toFixed(0)).join(', ');
    const told = `p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  longest ${at(1)} ms  computed at most ${own} ms`;
    process.stdout.write(`${what.padEnd(16)} ${told}\n`);
  };
  // The first reading lets the gateway compile its code, and opens the connections.
  await readStreams(base, key);
  return {
    async round() {
      await read(without);
      painter.postMessage('go');
      await read(beside);
      painter.postMessage('stop');
      if (failure !== null) throw failure;
    },
    tell() {
      process.stdout.write(`${main}\n`);
      row('without images', without);
      row(`with ${images} by ${route}`, beside);
    },
    async stop() {
      await painter.terminate();
      await gateway.stop();
    },
  };
}

/** Reads all streams of one round. Returns the gaps between their chunks in milliseconds. */
async function readStreams(base: string, key: string): Promise<readonly number[]> {
  const gaps: number[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: STREAMS });
  const one = async () => {
    const reply = await post(
      base,
      key,
      '/api/v1/chat/completions',
      { model: 'bench/chat', stream: true, messages: [{ role: 'user', content: 'x' }] },
      agent,
    );
    let last = 0;
    reply.on('data', () => {
      const now = performance.now();
      if (last !== 0) gaps.push(now - last);
      last = now;
    });
    await once(reply, 'end');
  };
  await Promise.all(Array.from({ length: STREAMS }, one));
  agent.destroy();
  return gaps;
}

async function post(base: string, key: string, path: string, body: object, agent?: Agent): Promise<IncomingMessage> {
  const asked = request(new URL(path, base), {
    method: 'POST',
    ...(agent ? { agent } : {}),
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
  });
  asked.end(JSON.stringify(body));
  const [reply] = (await once(asked, 'response')) as [IncomingMessage];
  if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode}`);
  return reply;
}

/** A client that requests one image after the other while it is switched on, at most one per `everyMs`. */
function askForImages({ base, key, route, everyMs }: Painter): void {
  const { path, body } = ENDPOINTS[route]!;
  let running = false;
  const work = async () => {
    while (running) {
      const next = pause(everyMs);
      const reply = await post(base, key, path, body(randomUUID()));
      let bytes = 0;
      reply.on('data', (chunk: Buffer) => (bytes += chunk.length));
      await once(reply, 'end');
      if (bytes < MIB) throw new Error(`${path}: ${bytes} bytes are no image`);
      parentPort!.postMessage('image');
      await next;
    }
  };
  parentPort!.on('message', (told: string) => {
    running = told === 'go';
    if (running) void work();
  });
}

/** A provider with paced chunks and one image of the given size. */
async function serve(mib: number): Promise<void> {
  const head = Buffer.alloc(24);
  head.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x04\0', 'latin1');
  const image = Buffer.concat([head, Buffer.alloc(mib * MIB)]).toString('base64');
  const painted = Buffer.from(JSON.stringify({ created: 1, data: [{ b64_json: image }] }));
  const server = createServer((incoming, response) => {
    incoming.resume();
    if (incoming.url?.endsWith('/images/generations'))
      return response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': painted.length })
        .end(painted);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void chunks(response);
  });
  const chunks = async (response: import('node:http').ServerResponse) => {
    const chunk = (more: object) => response.write(`data: ${JSON.stringify({ id: 'up', created: 1, ...more })}\n\n`);
    const until = performance.now() + ROUND_MS;
    while (performance.now() < until) {
      await pause(CHUNK_MS);
      chunk({ choices: [{ index: 0, delta: { content: 'word ' }, finish_reason: null }] });
    }
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
    response.end('data: [DONE]\n\n');
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  parentPort!.postMessage(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
}

function configurationAt(chat: string, paint: string): string {
  return `
[limits]
requests_per_minute = 1000000
burst = 1000000
[[models]]
name = "bench/chat"
display_name = "Bench"
provider_name = "Bench"
context_length = 1000
max_output_tokens = 1000
[models.pricing]
prompt = 1
completion = 1
[models.params]
model = "chat"
api_base = "${chat}"
api_key = ""
[[images]]
name = "bench/paint"
display_name = "Bench"
provider_name = "Bench"
[images.pricing]
generation = 0.001
[images.params]
model = "paint"
api_base = "${paint}"
`;
}

function readDev(dataDir: string): { readonly base_url: string; readonly api_key: string } | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch {
    return null;
  }
}
