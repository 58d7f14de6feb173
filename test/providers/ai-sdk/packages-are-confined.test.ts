import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { existsSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { SdkTarget } from '#config';
import { createEgress } from '../../../src/providers/ai-sdk/egress.ts';
import { createPackageLog } from '../../../src/providers/ai-sdk/package-log.ts';
import { startWorker } from '../../../src/providers/ai-sdk/start-worker.ts';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { installHostile, NO_WALL } from './support/hostile-package.ts';

// A package that does its worst, in a process that may do nothing.

interface World {
  /** The same, with a reply that nobody reads. */
  ignores(deed: string): Promise<number>;
  /** Lets the package do something. Resolves with the status, and the text of the model or the message of the error. */
  does(deed: string): Promise<readonly [status: number, text: string]>;
  /** The same with files that a message names by their addresses. */
  doesWith(deed: string, urls: readonly string[]): Promise<readonly [status: number, text: string]>;
  readonly folder: string;
  readonly log: string[];
}

function start(settings: SdkTarget['settings'] = {}, secrets: SdkTarget['secrets'] = {}, allowPrivate = false): World {
  const folder = installHostile();
  const log: string[] = [];
  const workers = createSdkWorkers({
    connectionsMax: 100,
    headTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    wall: 'if_available',
    hidden: [],
    allowPrivate,
    log: (sdk, text) => log.push(`${sdk} ${text}`),
    tell: ({ text }) => log.push(text),
    times: { startMs: 60_000, pingMs: 100, stallMs: 2_000 },
  });
  onTestFinished(() => workers.close());
  const target: SdkTarget = { kind: 'sdk', sdk: 'hostile', settings, secrets, directory: folder };
  const send = (content: unknown) =>
    request('http://ai-sdk/chat/completions', {
      dispatcher: workers.open(target),
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
    });
  const does = async (content: unknown) => {
    const { statusCode, body } = await send(content);
    const reply = (await body.json()) as { choices?: { message: { content: string } }[]; error?: { message: string } };
    return [statusCode, reply.choices?.[0]?.message.content ?? reply.error!.message] as const;
  };
  return {
    folder,
    log,
    async ignores(deed) {
      const { statusCode, body } = await send(deed);
      body.on('error', () => {});
      return statusCode;
    },
    does,
    doesWith: (deed, urls) =>
      does([{ type: 'text', text: deed }, ...urls.map((url) => ({ type: 'image_url', image_url: { url } }))]),
  };
}

/** A server on this machine that counts who comes. */
async function startInside(answer: (path: string) => readonly [number, string?]) {
  const seen: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    seen.push(url);
    const [status, location] = answer(url);
    response.writeHead(status, location === undefined ? {} : { location }).end('inside');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { seen, port, origin: `http://127.0.0.1:${port}` };
}

test('it gets its settings and its secrets, and no environment', async () => {
  const { does } = start({ region: 'eu', 'headers.x-org': 'a', retries: 2, fast: true }, { apiKey: 'canary' });
  const [, text] = await does('settings');
  expect(JSON.parse(text)).toEqual({
    region: 'eu',
    headers: { 'x-org': 'a' },
    retries: 2,
    fast: true,
    apiKey: 'canary',
    fetch: 'function',
  });
  const [, environment] = await does('environment');
  expect(JSON.parse(environment)).toEqual({ HOME: '/' });
});

test('it reads, writes, runs, listens and connects to nothing', async () => {
  const inside = await startInside(() => [200]);
  const { does, folder } = start();
  const secret = join(folder, 'secret.txt');
  writeFileSync(secret, 'canary');
  const deeds = [
    `read ${secret}`,
    'read /proc/self/environ',
    'read /etc/passwd',
    `write ${join(folder, 'node_modules', 'hostile', 'left.txt')}`,
    'run id',
    'thread',
    `connect ${inside.port}`,
    'listen',
    `datagram ${inside.port}`,
    'resolve localhost',
    `http ${inside.origin}/http`,
    'binding',
    'signal',
  ];
  for (const deed of deeds) {
    const [status, text] = await does(deed);
    expect([deed, status], text).toEqual([deed, 502]);
    expect(text).toMatch(/restricted|ERR_ACCESS_DENIED|process\.binding|may not call/);
  }
  expect(inside.seen).toEqual([]);
});

test('its requests reach the operator’s own address, and else only the public internet', async () => {
  const inside = await startInside((path) => (path === '/away' ? [302, 'http://169.254.169.254/latest'] : [200]));
  const other = await startInside(() => [200]);
  const { does, log } = start({ baseURL: `${inside.origin}/v1` });
  expect(await does(`fetch ${inside.origin}/v1/models`)).toEqual([200, '200 inside']);
  const refused = [
    `${other.origin}/x`,
    'http://169.254.169.254/latest/meta-data',
    'https://localhost/x',
    'https://[::1]/x',
    'file:///etc/passwd',
    `${inside.origin}/away`,
  ];
  for (const url of refused) {
    const [status, text] = await does(`fetch ${url}`);
    expect([url, status], text).toEqual([url, 502]);
  }
  expect((await does(`global ${other.origin}/global`))[0]).toBe(502);
  expect(other.seen).toEqual([]);
  expect(inside.seen).toEqual(['/v1/models', '/away']);
  expect(log.join('\n')).toContain('169.254.169.254');
});

test('large requests and replies pass, and one that nobody reads holds up no other', async () => {
  const { does, ignores } = start();
  const many = 20_000_000;
  for (let unread = 0; unread < 4; unread++) expect(await ignores(`large ${many}`)).toBe(200);
  const [, text] = await does(`large ${many}`);
  expect(text).toHaveLength(many);
  expect(await does(`count ${'y'.repeat(many)}`)).toEqual([200, String(many)]);
});

test('files that a request names by their addresses are loaded one after the other, and have a bound together', async () => {
  const megabytes = (count: number) => Buffer.alloc(count * 1024 * 1024);
  const seen: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    seen.push(url);
    response.end(megabytes(Number(url.slice(1))));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { doesWith, does, log } = start({}, {}, true);
  const files = (count: number, mib: number) => Array<string>(count).fill(`http://127.0.0.1:${port}/${mib}`);
  expect(await doesWith('files', files(30, 1))).toEqual([200, '30 files with 41943120 characters']);
  expect(await doesWith('files', files(60, 20))).toEqual([413, expect.stringContaining('more than 33554432 bytes')]);
  expect(await doesWith('files', files(1, 21))).toEqual([413, expect.stringContaining('more than 20971520 bytes')]);
  expect(seen.filter((url) => url !== '/1')).toEqual(['/20', '/20', '/21']);
  expect(await doesWith('files', files(101, 1))).toEqual([422, expect.stringContaining('more than 100 files')]);
  expect(seen).toHaveLength(33);
  // Calls that last hold what they have loaded.
  const holding = [0, 1, 2].map(() => doesWith('never', files(1, 20)).catch(() => {}));
  await expect.poll(() => seen.length).toBe(36);
  expect(await doesWith('files', files(30, 1))).toEqual([429, expect.stringContaining('all running calls')]);
  await does('exit').catch(() => {});
  await Promise.all(holding);
  expect(log.join('\n')).not.toContain('memory');
});

test('many addresses that a package does not get are one line of the log', async () => {
  const { doesWith, log } = start();
  const urls = Array.from({ length: 90 }, (_, at) => `http://127.0.0.1/${at}`);
  expect(await doesWith('files', urls)).toEqual([400, expect.stringContaining('could not be loaded')]);
  expect(log.filter((line) => line.includes('which it does not get'))).toHaveLength(1);
});

test.each([
  ['exit', 'code 7'],
  ['crash', 'thrown in a callback'],
  ['spin', 'did not answer'],
  ['grow', 'was ended by'],
  ['tells 20000', 'messages that nobody asked for'],
  ['claims 9999', 'it takes 9999 MiB of memory'],
])('it does not take the gateway with it: %s', async (deed, logged) => {
  const { does, log } = start();
  expect((await does('settings'))[0]).toBe(200);
  const beside = does('never');
  // What it was asked may be answered before the gateway has read all that it tells.
  if (/^(?:tells|claims)/.test(deed)) await does(deed).catch(() => null);
  else await expect(does(deed)).rejects.toThrow();
  // Calls beside it end with the process.
  await expect(beside).rejects.toThrow();
  await expect.poll(() => log.join('\n')).toContain(logged);
  // The next call starts another.
  expect((await does('settings'))[0]).toBe(200);
});

test('it begins in a folder with nothing of the gateway', async () => {
  const { does } = start();
  const [, folder] = await does('folder');
  expect(folder).toMatch(/^\/$|ai-sdk\/wall$/);
});

test('the kernel gives it no more memory, where it has bounds', async () => {
  if (!existsSync('/usr/bin/prlimit')) return;
  const { does } = start();
  const [status, text] = await does('asks 1024');
  expect([status, text]).toEqual([502, expect.stringContaining('allocation failed')]);
});

/** As behind a wall whose helper waits for its program. */
const BEHIND_A_HELPER: typeof NO_WALL = {
  ...NO_WALL,
  launch: ({ args }) => ({ command: '/bin/sh', args: ['-c', '"$0" "$@"; exit', process.execPath, ...args], cwd: '/' }),
};

test.each([
  ['itself', NO_WALL],
  ['below a helper', BEHIND_A_HELPER],
])('without such bounds, the gateway sees what it takes %s, whatever it says', async (_where, wall) => {
  if (process.platform !== 'linux') return;
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  const egress = createEgress({ allowPrivate: false });
  const worker = startWorker({
    target: { kind: 'sdk', sdk: 'hostile', settings: {}, secrets: {}, directory: installHostile() },
    egress,
    wall,
    log: createPackageLog(resolve),
    times: { startMs: 60_000, pingMs: 100, stallMs: 60_000 },
  });
  onTestFinished(async () => {
    worker.kill();
    await egress.close();
  });
  const calls = await worker.calls;
  const session = connectHttp2('http://ai-sdk', { createConnection: () => calls });
  session.on('error', () => {});
  const stream = session.request({ ':method': 'POST', ':path': '/chat/completions' });
  stream.on('error', () => {}).end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'fills 900' }] }));
  expect(await ended).toMatch(/^it takes \d+ MiB of memory, more than 768, so it is ended$/);
  expect(await worker.ended).toBe('was ended by SIGKILL');
});
