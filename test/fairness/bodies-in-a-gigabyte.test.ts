import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { fillDataDirectory, newDataDirectory } from '../support/data-directory.ts';
import { operatorOf } from '../support/gateway.ts';
import { createMemoryGroup } from '../support/memory-group.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { openSocket, readAnswer } from '../support/raw-http.ts';
import { ask, modelBlock } from '../support/spine.ts';
import { png } from '../media/support/image-provider.ts';
import { startVideoProvider, type VideoProvider } from '../media/support/video-provider.ts';

// A gateway in 1 GiB of memory, as the chart gives it, with the default limits. Each case floods it with bodies, while
// another account from another network makes small calls.

const MIB = 1024 * 1024;
const MEMORY = 1024 * MIB;
const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';
const BYSTANDER = '10.9.0.1';
const STRANGER = '10.8.0.1';

let models: TestProvider;
let videos: VideoProvider;
let slow: Server;
beforeAll(async () => {
  models = await startProvider();
  videos = await startVideoProvider();
  slow = createServer((incoming, response) => {
    incoming.resume();
    incoming.once('end', () =>
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(
          JSON.stringify({
            id: 'x',
            object: 'chat.completion',
            created: 1,
            model: 'm',
            choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        );
      }, 2_000),
    );
  }).listen(0, '127.0.0.1');
  await once(slow, 'listening');
});
afterAll(async () => {
  slow.close();
  slow.closeAllConnections();
  await Promise.all([models.stop(), videos.close()]);
  process.stdout.write(`\n${table()}\n`);
});

const rows: string[][] = [];
const table = () =>
  [['case', 'answers', 'alive', 'peak RSS', 'peak of the group', 'others served', 'others wait (median)'], ...rows]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');

interface Gateway {
  readonly url: string;
  readonly child: ChildProcess;
  openAccount: ReturnType<typeof operatorOf>['openAccount'];
  peakGroup(): number;
}

async function startIn(bytes: number): Promise<Gateway> {
  const group = createMemoryGroup(bytes);
  if (group === null)
    throw new Error('this machine does not let this process make a memory group: run the test as root');
  const dataDir = newDataDirectory();
  fillDataDirectory(dataDir);
  const toml = join(dataDir, 'gateway.toml');
  const slowUrl = `http://127.0.0.1:${(slow.address() as AddressInfo).port}/v1`;
  writeFileSync(
    toml,
    `[server]\ntrusted_proxies = ["127.0.0.1"]\n` +
      modelBlock({ provider: 'Quick', url: models.url }) +
      modelBlock({ name: 'test/slow', provider: 'Slow', url: slowUrl, contextLength: 10_000_000 }) +
      `[[videos]]\nname = "test/film"\ndisplay_name = "Film"\nprovider_name = "Filmer"\n[videos.pricing]\nbase = 0.01\n[videos.pricing.per_second]\n"720p" = 0.01\n[videos.params]\nmodel = "film"\napi_base = "${videos.url}"\napi_key = "std::env::TEST_UPSTREAM_KEY"\n`,
  );
  const program = join(import.meta.dirname, 'support/paper-gateway.ts');
  const child = spawn(
    'sh',
    ['-c', `${group.enter} && exec "$0" "$@"`, process.execPath, program, toml, dataDir, ADMIN_KEY],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      },
    },
  );
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await group.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const [url] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error('the gateway did not start'))),
  ])) as [string];
  const { openAccount } = operatorOf(() => ({ baseUrl: url, adminKey: ADMIN_KEY }));
  return { url, child, openAccount, peakGroup: group.peak };
}

const peakRss = ({ pid }: ChildProcess): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

/** One small call. Resolves with its time in milliseconds; null if it was not served. */
async function call(url: string, key: string): Promise<number | null> {
  const begun = performance.now();
  try {
    const response = await fetch(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, 'x-forwarded-for': BYSTANDER },
      body: JSON.stringify(ask('hello !tokens:1')),
    });
    await response.arrayBuffer();
    return response.status === 200 ? performance.now() - begun : null;
  } catch {
    return null;
  }
}

async function calls(url: string, key: string, while_: () => boolean, least: number): Promise<(number | null)[]> {
  const took: (number | null)[] = [];
  while (took.length < least || while_()) {
    took.push(await call(url, key));
    // Below the rate of a key with the default limits.
    await pause(took.length < 60 ? 50 : 1_000);
  }
  return took;
}

const median = (times: readonly (number | null)[]): number =>
  times.filter((time) => time !== null).toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Infinity;

/** Runs `flood` against a new gateway, and calls of another account alone and beside it. */
async function withBystander(
  name: string,
  flood: (gateway: Gateway) => Promise<Record<string, number>>,
): Promise<Record<string, number>> {
  const gateway = await startIn(MEMORY);
  const alone = await gateway.openAccount('alone', 10);
  const beside = await gateway.openAccount('beside', 10);
  await calls(gateway.url, alone.key, () => false, 20);
  const before = await calls(gateway.url, alone.key, () => false, 40);
  let over = false;
  const flooding = flood(gateway).finally(() => (over = true));
  const during = await calls(gateway.url, beside.key, () => !over, 40);
  const answers = await flooding;
  const alive = gateway.child.exitCode === null && gateway.child.signalCode === null;
  const served = during.filter((time) => time !== null).length / during.length;
  const wait = median(during) / median(before);
  rows.push([
    name,
    Object.entries(answers)
      .map(([status, count]) => `${count} × ${status}`)
      .join(', '),
    alive ? 'yes' : 'no',
    alive ? `${Math.round(peakRss(gateway.child) / MIB)} MiB` : '–',
    `${Math.round(gateway.peakGroup() / MIB)} MiB`,
    `${Math.round(served * 100)} %`,
    `${wait.toFixed(1)} × (${median(before).toFixed(1)} ms alone)`,
  ]);
  expect(alive).toBe(true);
  expect(served).toBeGreaterThanOrEqual(0.95);
  expect(wait).toBeLessThanOrEqual(2);
  return answers;
}

/** Sends 30 of 31 MB on many connections, and falls silent for up to 60 s. */
async function sendAndFallSilent(url: string, count: number, credential: string): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  const piece = Buffer.alloc(64 * 1024, ' ');
  const one = async () => {
    const socket = await openSocket(url);
    const answer = readAnswer(socket).then(
      ({ status }) => String(status),
      () => 'closed',
    );
    socket.write(
      `POST /api/v1/image/edit HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${STRANGER}\r\ncontent-type: application/json\r\n${credential}content-length: 31000000\r\n\r\n`,
    );
    await writeAll(socket, piece, 30_000_000);
    const status = await answer;
    answers[status] = (answers[status] ?? 0) + 1;
    socket.destroy();
  };
  await Promise.all(Array.from({ length: count }, one));
  return answers;
}

/** Writes until all is written or the connection is closed. */
async function writeAll(socket: Socket, piece: Buffer, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes && socket.writable; sent += piece.byteLength)
    // oxlint-disable-next-line no-await-in-loop -- one after the other, as the connection takes them
    await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
}

/** Sends complete requests at once. Each is repeated as its answer says, until it is served. */
async function sendWhole(
  url: string,
  path: string,
  body: Buffer,
  key: string,
  count: number,
): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  const send = () =>
    new Promise<{ status: string; retryMs: number }>((resolve) => {
      const sent = httpRequest(`${url}/api/v1${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': body.byteLength,
          authorization: `Bearer ${key}`,
          'x-forwarded-for': STRANGER,
        },
      });
      sent.on('response', (response) => {
        response.resume();
        response.once('close', () =>
          resolve({
            status: String(response.statusCode),
            retryMs: Number(response.headers['retry-after'] ?? 1) * 1_000,
          }),
        );
      });
      sent.on('error', () => resolve({ status: 'closed', retryMs: 1_000 }));
      sent.end(body);
    });
  const one = async () => {
    for (let tries = 0; tries < 40; tries++) {
      const { status, retryMs } = await send();
      answers[status] = (answers[status] ?? 0) + 1;
      if (status !== '429' && status !== '503') return;
      await pause(retryMs + Math.random() * 500);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return answers;
}

test('60 connections of a stranger that send 30 MB and fall silent', async () => {
  await withBystander('60 strangers of one address, 30 of 31 MB', ({ url }) => sendAndFallSilent(url, 60, ''));
});

test('80 connections of an account without money', async () => {
  const answers = await withBystander('80 uploads of an account without money', async ({ url, openAccount }) =>
    sendAndFallSilent(url, 80, `authorization: Bearer ${(await openAccount('poor', 0.000001)).key}\r\n`),
  );
  expect(answers['429']).toBeGreaterThan(70);
});

test('80 connections of one key', async () => {
  await withBystander('80 uploads of one key', async ({ url, openAccount }) =>
    sendAndFallSilent(url, 80, `authorization: Bearer ${(await openAccount('rich', 100)).key}\r\n`),
  );
});

test('12 honest requests for videos with a frame of 19 MB: all are served', async () => {
  const frame = Buffer.concat([png(64, 64), Buffer.alloc(19_000_000, 7)]).toString('base64');
  const body = Buffer.from(
    JSON.stringify({ model: 'test/film', prompt: 'x', duration: '4s', image_url: `data:image/png;base64,${frame}` }),
  );
  const answers = await withBystander('12 videos with a frame of 19 MB', async ({ url, openAccount }) =>
    sendWhole(url, '/video/queue', body, (await openAccount('filmer', 100)).key, 12),
  );
  expect(answers['200']).toBe(12);
});

test('24 chat requests of 10 MiB: all are served', async () => {
  const body = Buffer.from(
    JSON.stringify({
      model: 'test/slow',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'x'.repeat(10_000_000) }],
    }),
  );
  const answers = await withBystander('24 chats of 10 MB', async ({ url, openAccount }) =>
    sendWhole(url, '/chat/completions', body, (await openAccount('talker', 10_000)).key, 24),
  );
  expect(answers['200']).toBe(24);
});
