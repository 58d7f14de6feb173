import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Wall } from '../../../../src/providers/ai-sdk/wall/find-wall.ts';

/**
 * A folder in which the package `hostile` is installed. Its provider does what the first message of a call says, one of
 * the names below with an argument, and answers with what came of it.
 */
export function installHostile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-hostile-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const at = join(folder, 'node_modules', 'hostile');
  mkdirSync(at, { recursive: true });
  writeFileSync(
    join(at, 'package.json'),
    '{"name":"hostile","version":"1.0.0","type":"module","exports":"./index.js"}',
  );
  writeFileSync(join(at, 'index.js'), SOURCE);
  return folder;
}

/** No wall but Node's own, and no bound of memory. */
export const NO_WALL: Wall = {
  name: '',
  keeps: { files: false, signals: false, network: false },
  why: null,
  launch: ({ args }) => ({ command: process.execPath, args: [...args], cwd: '/' }),
};

const SOURCE = `
import { execSync } from 'node:child_process';
import { readFileSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, connect, Socket } from 'node:net';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { Worker } from 'node:worker_threads';

const event = (emitter, name) =>
  new Promise((resolve, reject) => {
    emitter.once(name, () => resolve('succeeded'));
    emitter.once('error', reject);
  });
const DEEDS = {
  settings: (_, settings) => JSON.stringify({ ...settings, fetch: typeof settings.fetch }),
  environment: () => JSON.stringify(process.env),
  read: (path) => readFileSync(path, 'utf8').length,
  write: (path) => writeFileSync(path, 'x'),
  run: (command) => execSync(command).toString(),
  thread: () => event(new Worker('1', { eval: true }), 'exit'),
  connect: (port) => event(connect(Number(port), '127.0.0.1'), 'connect'),
  listen: () => event(createServer().listen(0), 'listening'),
  datagram: async (port) => {
    const socket = createSocket('udp4');
    const failed = event(socket, 'never');
    socket.send('x', Number(port), '127.0.0.1');
    return failed;
  },
  resolve: (name) => lookup(name),
  http: (url) => event(request(url).end(), 'response'),
  binding: () => process.binding('tcp_wrap'),
  signal: () => process.kill(process.ppid, 'SIGTERM'),
  fetch: async (url, settings) => {
    const response = await settings.fetch(url);
    return response.status + ' ' + (await response.text());
  },
  global: async (url) => (await globalThis.fetch(url)).status,
  exit: () => process.exit(7),
  crash: () => new Promise(() => setImmediate(() => { throw new Error('thrown in a callback'); })),
  folder: () => process.cwd(),
  // Memory that is asked for, and memory that is filled, beside the heap; and what the process says of it.
  asks: (mib) => Buffer.alloc(Number(mib) * 2 ** 20).length,
  fills: (mib) => {
    process.memoryUsage.rss = () => 2 ** 20;
    globalThis.held = Buffer.alloc(Number(mib) * 2 ** 20, 1);
    return new Promise(() => {});
  },
  tells: (lines) => writeSync(5, '\\n'.repeat(Number(lines))),
  says: (lines) => writeSync(2, Array.from({ length: Number(lines) }, (_, at) => 'said ' + at + '\\n').join('')),
  claims: (mib) => writeSync(5, mib + '\\n'),
  spin: () => { for (;;); },
  grow: () => { const held = []; for (;;) held.push(new Array(1e6).fill(held.length)); },
  large: (bytes) => 'x'.repeat(Number(bytes)),
  count: (text) => text.length,
  files: (_, settings, files) => files.length + ' files with ' + files.join('').length + ' characters',
  never: () => new Promise(() => {}),
  throw: (text) => { throw Object.assign(new Error(text), { name: 'AI_APICallError', statusCode: 500 }); },
};

// Frames of HTTP/2 with one byte of data, which nobody asked for, on both pipes: on the second, it is the client.
const flood = (frames) => {
  const frame = Buffer.from([0, 0, 1, 0, 0, 0, 0, 0, 1, 10]);
  for (const pipe of [3, 4])
    for (let left = Buffer.concat([Buffer.alloc(pipe === 4 ? 24 : 0), Buffer.alloc(frames * frame.length, frame)]); left.length > 0; )
      try {
        left = left.subarray(writeSync(pipe, left));
      } catch {
        // The pipe is full.
      }
};

export function createHostile(settings) {
  if (settings.floods !== undefined) flood(settings.floods);
  const model = (modelId) => ({
    specificationVersion: 'v4',
    provider: 'hostile',
    modelId,
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const [deed, ...more] = prompt[0].content[0].text.split(' ');
      const files = prompt[0].content.slice(1).map(({ data }) => data.data);
      const result = await DEEDS[deed](more.join(' '), settings, files);
      return {
        content: [{ type: 'text', text: String(result) }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
      };
    },
    async doStream() {
      throw new Error('no streams');
    },
  });
  return { specificationVersion: 'v4', languageModel: model, embeddingModel: model, imageModel: model };
}
`;
