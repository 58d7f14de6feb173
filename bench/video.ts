/**
 * `node bench/video.ts`: the speed of downloads of a finished video of 100 MB, and their memory. A gateway runs with an
 * upstream in this process, on 127.0.0.1. `--mib` sets another size, `--rounds` the number of measurements.
 *
 * Two servers that only pipe the same file are measured in turns with it: a Fastify route, and Node's own server with
 * chunks as large as the gateway's. `--against src/main.ts` of another version of the gateway also measures that
 * version in the same run.
 */
import { once } from 'node:events';
import { createReadStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fastify } from 'fastify';
import { announcedPort, cpuMicros, type Program, residentBytes, startProgram } from './program.ts';

const MIB = 1024 * 1024;
const LOADS = [
  ['one by one', 1, 5],
  ['16 at once', 16, 16],
] as const;
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    against: { type: 'string' },
    serve: { type: 'string' },
    file: { type: 'string' },
  },
});
if (values.serve !== undefined) await serveFile(values.serve, values.file!);
else await run();

async function run(): Promise<void> {
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
  writeFileSync(config, configurationAt((upstream.address() as AddressInfo).port, film.length));
  const file = join(folder, 'film.mp4');
  writeFileSync(file, film);
  const sources: Source[] = [];
  try {
    sources.push(await startGateway('tollgate', MAIN, config, join(folder, 'data')));
    if (values.against !== undefined)
      sources.push(await startGateway('against', resolve(values.against), config, join(folder, 'against')));
    for (const kind of ['fastify', 'node']) sources.push(await startBare(kind, file));
    const rows = new Map<string, Row>();
    for (let round = 0; round < Number(values.rounds); round += 1)
      for (const source of sources)
        for (const [what, atOnce, count] of LOADS)
          addTo(rows, `${source.name.padEnd(9)} ${what}`, await measured(source, film.length, atOnce, count));
    for (const [name, { ms, cpuMs, bytes, more }] of rows)
      process.stdout.write(
        `${name.padEnd(24)} ${(bytes / 1e3 / ms).toFixed(0).padStart(6)} MB/s  ` +
          `${(bytes / 1e3 / cpuMs).toFixed(0).padStart(6)} MB per CPU second  +${(more / MIB).toFixed(1)} MiB\n`,
      );
  } finally {
    await Promise.all(sources.map(({ program }) => program.stop()));
    upstream.close();
    upstream.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A server that serves the file. */
interface Source {
  readonly name: string;
  readonly program: Program;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sums over all rounds. */
interface Row {
  readonly ms: number;
  readonly cpuMs: number;
  readonly bytes: number;
  /** The most resident memory in bytes during the downloads, in addition to that just before them. */
  readonly more: number;
}

async function startGateway(name: string, main: string, config: string, data: string): Promise<Source> {
  const program = startProgram([main, 'start', '--config', config, '--data', data, '--port', '0']);
  const { base_url: base, api_key: key } = await program.until(() => readDev(data), 'it listens');
  const headers = { authorization: `Bearer ${key}` };
  const post = (path: string, body: object) =>
    fetch(`${base}/api/v1${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const queued = await post('/video/queue', { model: 'bench/film', prompt: 'A tollgate', duration: '4s' });
  const { id } = (await queued.json()) as { id: string };
  for (let type = ''; type !== 'video/mp4';) {
    const seen = await post('/video/retrieve', { task_id: id, wait_for_final: true });
    type = seen.headers.get('content-type') ?? '';
    await seen.body?.cancel();
  }
  return warmed({ name, program, url: `${base}/api/v1/videos/${id}/content`, headers });
}

async function startBare(kind: string, file: string): Promise<Source> {
  const program = startProgram([fileURLToPath(import.meta.url), '--serve', kind, '--file', file]);
  const port = await announcedPort(program);
  return warmed({ name: kind, program, url: `http://127.0.0.1:${port}/film`, headers: {} });
}

/** Lets the server compile its code, and lets V8 grow its heap. Otherwise the first round would measure that. */
async function warmed(source: Source): Promise<Source> {
  for (const [, atOnce, count] of LOADS) await downloads(source, atOnce, count);
  return source;
}

/** The reference: a route that only pipes the file. */
async function serveFile(kind: string, file: string): Promise<void> {
  const { size } = statSync(file);
  const head = { 'content-type': 'video/mp4', 'content-length': size };
  const told = (port: number) => process.stdout.write(`{"port":${port}}\n`);
  process.stdin.on('end', () => process.exit()).resume();
  if (kind === 'fastify') {
    const app = fastify();
    app.get('/film', (_request, reply) => reply.headers(head).send(createReadStream(file)));
    await app.listen({ port: 0, host: '127.0.0.1' });
    return void told((app.server.address() as AddressInfo).port);
  }
  const server = createServer((_request, response) => {
    response.writeHead(200, head);
    createReadStream(file, { highWaterMark: 256 * 1024 }).pipe(response);
  });
  server.listen(0, '127.0.0.1', () => told((server.address() as AddressInfo).port));
}

async function measured(source: Source, length: number, atOnce: number, count: number): Promise<Row> {
  const { pid } = source.program;
  const before = residentBytes(pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, residentBytes(pid))), 5);
  const [at, cpu] = [performance.now(), cpuMicros(pid) / 1000];
  const lengths = await downloads(source, atOnce, count);
  const row = { ms: performance.now() - at, cpuMs: cpuMicros(pid) / 1000 - cpu };
  clearInterval(watch);
  const wrong = lengths.find((bytes) => bytes !== length);
  if (wrong !== undefined) throw new Error(`${source.name}: ${wrong} bytes came, of ${length}`);
  return { ...row, bytes: length * count, more: most - before };
}

/** Downloads the file `count` times, at most `atOnce` at a time. Returns the lengths. */
async function downloads(source: Source, atOnce: number, count: number): Promise<number[]> {
  const lengths: number[] = [];
  let begun = 0;
  const client = async () => {
    while (begun < count) {
      begun += 1;
      lengths.push(await download(source));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  return lengths;
}

function addTo(rows: Map<string, Row>, name: string, row: Row): void {
  const { ms, cpuMs, bytes, more } = rows.get(name) ?? { ms: 0, cpuMs: 0, bytes: 0, more: 0 };
  rows.set(name, {
    ms: ms + row.ms,
    cpuMs: cpuMs + row.cpuMs,
    bytes: bytes + row.bytes,
    more: Math.max(more, row.more),
  });
}

/** Downloads a file as fast as possible and drops it. Resolves with its length. */
async function download({ url, headers }: Pick<Source, 'url' | 'headers'>): Promise<number> {
  const asked = request(url, { headers });
  asked.end();
  const [reply] = (await once(asked, 'response')) as [IncomingMessage];
  let bytes = 0;
  reply.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(reply, 'end');
  return bytes;
}

function configurationAt(port: number, bytes: number): string {
  return `
[[videos]]
name = "bench/film"
display_name = "Bench"
provider_name = "Bench"
durations = ["4s"]
[videos.pricing]
per_second = { "720p" = 0.001 }
[videos.params]
model = "film"
api_base = "http://127.0.0.1:${port}/v1"
[media]
file_bytes_max = ${bytes}
free_bytes_min = 0
[limits]
requests_per_minute = 1000000
burst = 1000000
`;
}

function readDev(dataDir: string): { readonly base_url: string; readonly api_key: string } | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch {
    return null;
  }
}

/** An MP4 file with the right boxes but an empty film. */
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
