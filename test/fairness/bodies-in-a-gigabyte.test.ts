import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { fillDataDirectory, newDataDirectory } from '../support/data-directory.ts';
import { operatorOf } from '../support/gateway.ts';
import { stallsAt, watchedAt } from '../support/loop-stalls.ts';
import { createMemoryGroup } from '../support/memory-group.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock } from '../support/spine.ts';
import type { Flood, FloodAnswers, FloodReady } from './support/body-flood.ts';

// A gateway in 1 GiB of memory, as the chart gives it, with the default limits. Each case floods it with bodies, while
// another account from another network makes small calls. The flood and its providers are a process of their own, so
// that they do not delay the clock of the calls. They still take processors from the gateway: how much that is worth
// shows the control, in which the same flood goes through a bare server beside the gateway.

const MIB = 1024 * 1024;
const MEMORY = 1024 * MIB;
const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';
const BYSTANDER = '10.9.0.1';
/** Calls that are measured alone, beside the control and beside the flood: as many as a new key may make at once. */
const CALLS = 60;
/**
 * Shorter waits, scaled by the load, are not looked at. Bodies are outside of V8's heap, and V8 collects all of its
 * heap for each 64 MB of them, which takes 8 to 20 ms. So a few calls beside a flood wait for two collections.
 */
const NOISE_MS = 40;

let models: TestProvider;
let flooding: ChildProcess;
let providers: FloodReady;
let bare: ChildProcess;
let bareUrl: string;
const directory = mkdtempSync(join(tmpdir(), 'tollgate-bodies-'));
const program = (name: string) => join(import.meta.dirname, 'support', name);
beforeAll(async () => {
  models = await startProvider();
  flooding = fork(program('body-flood.ts'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  [providers] = (await once(flooding, 'message')) as [FloodReady];
  bare = spawn(process.execPath, [program('bare-passthrough.ts'), providers.slow], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  [bareUrl] = (await once(createInterface(bare.stdout!), 'line')) as [string];
});
afterAll(async () => {
  for (const child of [flooding, bare]) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  await models.stop();
  rmSync(directory, { recursive: true });
  process.stdout.write(`\n${table()}\n`);
});

const rows: string[][] = [];
const table = () =>
  [
    [
      'case',
      'answers',
      'took',
      'alive',
      'peak RSS',
      'group',
      'served',
      'alone',
      'control',
      'beside',
      'longest turn',
      'GC',
    ],
    ...rows,
  ]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');

interface Gateway {
  readonly url: string;
  readonly child: ChildProcess;
  openAccount: ReturnType<typeof operatorOf>['openAccount'];
  readonly socketPath: string;
  peakGroup(): number;
}

async function startIn(bytes: number): Promise<Gateway> {
  const group = createMemoryGroup(bytes);
  if (group === null)
    throw new Error('this machine does not let this process make a memory group: run the test as root');
  const dataDir = newDataDirectory();
  fillDataDirectory(dataDir);
  const toml = join(dataDir, 'gateway.toml');
  const socketPath = join(directory, `${rows.length}.sock`);
  writeFileSync(
    toml,
    `[server]\ntrusted_proxies = ["127.0.0.1"]\n` +
      modelBlock({ provider: 'Quick', url: models.url }) +
      modelBlock({ name: 'test/slow', provider: 'Slow', url: providers.slow, contextLength: 10_000_000 }) +
      `[[videos]]\nname = "test/film"\ndisplay_name = "Film"\nprovider_name = "Filmer"\n[videos.pricing]\nbase = 0.01\n[videos.pricing.per_second]\n"720p" = 0.01\n[videos.params]\nmodel = "film"\napi_base = "${providers.videos}"\napi_key = "std::env::TEST_UPSTREAM_KEY"\n`,
  );
  const child = spawn(
    'sh',
    ['-c', `${group.enter} && exec "$0" "$@"`, process.execPath, program('paper-gateway.ts'), toml, dataDir, ADMIN_KEY],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        ...watchedAt(socketPath),
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
  return { url, child, openAccount, socketPath, peakGroup: group.peak };
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

interface Waits {
  readonly served: number;
  readonly p50: number;
  readonly p95: number;
}

/** Calls one after the other, while `isOn` and at least as many as are measured. */
async function calls(url: string, key: string, isOn: () => boolean = () => false): Promise<Waits> {
  const took: (number | null)[] = [];
  while (took.length < CALLS || isOn()) {
    took.push(await call(url, key));
    await pause(took.length < CALLS ? 50 : 1_000);
  }
  const served = took.filter((time) => time !== null).toSorted((a, b) => a - b);
  const at = (part: number) => served[Math.floor(served.length * part)] ?? Infinity;
  return { served: served.length / took.length, p50: at(0.5), p95: at(0.95) };
}

async function flood(order: Flood): Promise<FloodAnswers> {
  flooding.send(order);
  return ((await once(flooding, 'message')) as [FloodAnswers])[0];
}

/** Calls beside floods through the bare server, until all calls are made. */
async function besideBare(url: string, key: string, order: Flood): Promise<Waits> {
  let over = false;
  const floods = (async () => {
    while (!over) await flood({ ...order, url: bareUrl });
  })();
  const waits = await calls(url, key);
  over = true;
  await floods;
  return waits;
}

const shown = ({ p50, p95 }: Waits) => `${p50.toFixed(1)} / ${p95.toFixed(1)} ms`;

/** Runs a flood against a new gateway, and calls of another account alone, beside the control, and beside the flood. */
async function withBystander(
  name: string,
  kind: Flood['kind'],
  count: number,
  usd: number | null,
): Promise<FloodAnswers> {
  const gateway = await startIn(MEMORY);
  const { url } = gateway;
  const keyOf = async (account: string) => (await gateway.openAccount(account, 10)).key;
  const order = { kind, count, url, key: usd === null ? null : (await gateway.openAccount('floods', usd)).key };
  await calls(url, await keyOf('first'));
  const alone = await calls(url, await keyOf('alone'));
  const control = await besideBare(url, await keyOf('control'), order);
  const key = await keyOf('beside');
  await stallsAt(gateway.socketPath);
  let over = false;
  const begun = performance.now();
  let tookMs = 0;
  const answered = flood(order).finally(() => {
    over = true;
    tookMs = performance.now() - begun;
  });
  const beside = await calls(url, key, () => !over);
  const answers = await answered;
  const alive = gateway.child.exitCode === null && gateway.child.signalCode === null;
  const stalls = alive ? await stallsAt(gateway.socketPath) : null;
  rows.push([
    name,
    Object.entries(answers)
      .map(([status, times]) => `${times} × ${status}`)
      .join(', '),
    `${(tookMs / 1000).toFixed(0)} s`,
    alive ? 'yes' : 'no',
    alive ? `${Math.round(peakRss(gateway.child) / MIB)} MiB` : '–',
    `${Math.round(gateway.peakGroup() / MIB)} MiB`,
    `${Math.round(beside.served * 100)} %`,
    shown(alone),
    shown(control),
    shown(beside),
    stalls === null ? '–' : `${stalls.cpuMs.toFixed(0)} ms of CPU, ${stalls.delayMs.toFixed(0)} ms`,
    stalls === null ? '–' : `${stalls.garbageMs.toFixed(0)} ms`,
  ]);
  expect(alive).toBe(true);
  expect(beside.served).toBeGreaterThanOrEqual(0.95);
  const figures = JSON.stringify({ alone, control, beside, stalls });
  for (const part of ['p50', 'p95'] as const)
    expect(beside[part], `${part} of ${figures}`).toBeLessThanOrEqual(
      2 * Math.max(alone[part], control[part], atThisLoad(NOISE_MS)),
    );
  return answers;
}

test('60 connections of a stranger that send 30 MB and fall silent', async () => {
  await withBystander('60 strangers of one address, 30 of 31 MB', 'silent', 60, null);
});

test('80 connections of an account without money', async () => {
  const answers = await withBystander('80 uploads of an account without money', 'silent', 80, 0.000001);
  expect(answers['429']).toBeGreaterThan(70);
});

test('80 connections of one key', async () => {
  await withBystander('80 uploads of one key', 'silent', 80, 100);
});

test('12 honest requests for videos with a frame of 19 MB: all are served', async () => {
  const answers = await withBystander('12 videos with a frame of 19 MB', 'videos', 12, 100);
  expect(answers['200']).toBe(12);
});

test('24 chat requests of 10 MiB: all are served', async () => {
  const answers = await withBystander('24 chats of 10 MB', 'chats', 24, 10_000);
  expect(answers['200']).toBe(24);
});
