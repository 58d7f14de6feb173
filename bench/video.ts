/**
 * `node bench/video.ts`: how fast a finished video of 100 MB is given out, and what that costs in memory. A gateway
 * runs with an upstream in this process, on 127.0.0.1. `--mib` sets another size.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cpuMicros, residentBytes, startProgram } from './program.ts';

const MIB = 1024 * 1024;
const ROUNDS = 10;
const AT_ONCE = 16;
const MAIN = fileURLToPath(new URL('../bin/tollgate.mjs', import.meta.url));

const { values } = parseArgs({ options: { mib: { type: 'string', default: '100' } } });
const film = filmOf(Number(values.mib) * MIB);

const upstream = createServer((incoming, response) => {
  incoming.resume();
  if (incoming.url?.endsWith('/content'))
    return response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': film.length }).end(film);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ id: 'video_1', object: 'video', status: 'completed' }));
});
upstream.listen(0, '127.0.0.1');
await once(upstream, 'listening');

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
const config = join(folder, 'gateway.toml');
writeFileSync(
  config,
  `[[videos]]
name = "bench/film"
display_name = "Bench"
provider_name = "Bench"
durations = ["4s"]
[videos.pricing]
per_second = { "720p" = 0.001 }
[videos.params]
model = "film"
api_base = "http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1"
[media]
file_bytes_max = ${film.length}
free_bytes_min = 0
`,
);
const data = join(folder, 'data');
const gateway = startProgram([MAIN, 'start', '--config', config, '--data', data, '--port', '0']);
try {
  const { base_url: base, api_key: key } = await gateway.until(() => readDev(data), 'it listens');
  const post = (path: string, body: object) =>
    fetch(`${base}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const queued = await post('/video/queue', { model: 'bench/film', prompt: 'A tollgate', duration: '4s' });
  const { id } = (await queued.json()) as { id: string };
  for (let type = ''; type !== 'video/mp4';) {
    const seen = await post('/video/retrieve', { task_id: id, wait_for_final: true });
    type = seen.headers.get('content-type') ?? '';
    await seen.body?.cancel();
  }
  const fetchIt = () => download(base, key, id);
  await fetchIt();
  const before = residentBytes(gateway.pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, residentBytes(gateway.pid))), 5);
  const alone = await measured(gateway.pid, ROUNDS, async () => {
    for (let round = 0; round < ROUNDS; round += 1) await fetchIt();
  });
  const mostAlone = most;
  const together = await measured(gateway.pid, AT_ONCE, () =>
    Promise.all(Array.from({ length: AT_ONCE }, fetchIt)).then(() => {}),
  );
  clearInterval(watch);
  const row = (what: string, { ms, cpuMs, count }: Measured, rss: number) =>
    `${what.padEnd(18)} ${((film.length * count) / 1e3 / ms).toFixed(0).padStart(6)} MB/s  ` +
    `${((film.length * count) / 1e3 / cpuMs).toFixed(0).padStart(6)} MB per CPU second  ` +
    `+${((rss - before) / MIB).toFixed(1)} MiB\n`;
  process.stdout.write(row('one by one', alone, mostAlone) + row(`${AT_ONCE} at once`, together, most));
} finally {
  await gateway.stop();
  upstream.close();
  upstream.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}

interface Measured {
  readonly ms: number;
  readonly cpuMs: number;
  readonly count: number;
}

async function measured(pid: number, count: number, run: () => Promise<void>): Promise<Measured> {
  const [at, cpu] = [performance.now(), cpuMicros(pid) / 1000];
  await run();
  return { ms: performance.now() - at, cpuMs: cpuMicros(pid) / 1000 - cpu, count };
}

/** Reads a file as fast as it comes, and drops it. */
async function download(base: string, key: string, id: string): Promise<void> {
  const asked = request(`${base}/api/v1/videos/${id}/content`, { headers: { authorization: `Bearer ${key}` } });
  asked.end();
  const [reply] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
  let bytes = 0;
  reply.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(reply, 'end');
  if (bytes !== film.length) throw new Error(`${bytes} bytes came, of ${film.length}`);
}

function readDev(dataDir: string): { readonly base_url: string; readonly api_key: string } | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch {
    return null;
  }
}

/** An MP4 file by its boxes; its film is empty. */
function filmOf(bytes: number): Buffer {
  const box = (type: string, content: Buffer) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + content.length);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, content]);
  };
  const header = Buffer.alloc(100);
  header.writeUInt32BE(1_000, 12);
  header.writeUInt32BE(4_000, 16);
  return Buffer.concat([
    box('ftyp', Buffer.from('isom\0\0\0\0isom')),
    box('moov', box('mvhd', header)),
    box('mdat', Buffer.alloc(bytes)),
  ]);
}
