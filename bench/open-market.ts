/** Whether a gateway of 1 GiB survives a market that is open to everybody, and what others notice. See `--help`. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findFreePort } from '../test/support/free-port.ts';
import { stallsAt, watchedAt } from '../test/support/loop-stalls.ts';
import { createMemoryGroup } from '../test/support/memory-group.ts';
import { SIGN_IN_TOML } from '../test/support/wallets.ts';
import { startGenerator, type Generator } from './generator.ts';
import type { Job } from './load/job.ts';
import { jobFor } from './measure.ts';
import { marketWallet } from './open-market/wallet.ts';
import { announcedPort, residentBytes, startProgram } from './program.ts';
import { median, table } from './report.ts';
import { modelsText } from './targets.ts';
import { MODELS } from './upstream/replies.ts';

const HELP = `node bench/open-market.ts [--minutes 30] [--empty 5] [--wallets 200] [--acts 30] [--calls 15]
  --minutes  of the strangers; --empty: minutes before, with the same acts at a gateway that nobody else uses
  --wallets  strangers with a wallet and an address of their own, of two /24 of IPv4 and two /48 of IPv6
  --acts     what they do in a second, all together: dial and register 300 models, leave, list, make and rotate keys,
             call a free model with tags, ask for quotes, search, register programs and begin to sign in
  --calls    paid chat calls a second of somebody else, whose latency is compared
The gateway is in a group of 1 GiB of memory, if this machine lets a process make one, with its default limits. Prints
a line for each minute: the gateway's memory, the bytes of its data, the longest turn of its loop (CPU), the p50 and p99
of the paid calls.
`;
const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    empty: { type: 'string', default: '5' },
    wallets: { type: 'string', default: '200' },
    acts: { type: 'string', default: '30' },
    calls: { type: 'string', default: '15' },
    help: { type: 'boolean' },
  },
});

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const TURN_MS = 10_000;
const TURNS_PER_MINUTE = 60_000 / TURN_MS;
/** The most by which the market may change the p99 of others. */
const P99_TIMES_MAX = 1.2;
/** The other caller calls with one key. The rate of an account, and of strangers of a network, is the default. */
const RATES = '[limits]\nrequests_per_minute = 1200\naccount_requests_per_minute = 600\n';
const ADMIN_KEY = 'open-market-open-market-open-market-1';
const MAIN = resolve(import.meta.dirname, '../bin/tollgate.mjs');

const mib = (bytes: number) => (bytes / MIB).toFixed(0);

const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, { parentPath, name }) => sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );

async function startMarket(upstreamPort: number) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-open-market-'));
  const dataDir = join(folder, 'data');
  const socketPath = join(folder, 'loop.sock');
  const config = join(folder, 'tollgate.toml');
  const group = createMemoryGroup(GIB);
  const port = await findFreePort();
  writeFileSync(
    config,
    `[server]\npublic_url = "http://127.0.0.1:${port}"\ntrusted_proxies = ["127.0.0.1/32"]\nlog_level = "error"\n${RATES}[authorization]\nenabled = true\n[tunnel]\nproviders = "anyone"\n${SIGN_IN_TOML}${modelsText(upstreamPort)}`,
  );
  const program = startProgram(
    [
      '-c',
      `${group?.enter ?? 'true'} && exec "$0" "$@"`,
      process.execPath,
      MAIN,
      'serve',
      '--config',
      config,
      '--data',
      dataDir,
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
    ],
    { file: 'sh', env: { ...watchedAt(socketPath), TOLLGATE_ADMIN_KEY: ADMIN_KEY } },
  );
  const url = `http://127.0.0.1:${port}`;
  const admin = async (path: string, body: object | null, method = body === null ? 'GET' : 'POST') => {
    const response = await fetch(`${url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  await program.until(async () => {
    const ready = await fetch(`${url}/health/ready`).catch(() => null);
    return ready?.ok ? true : null;
  }, 'readiness');
  await admin('/accounts', { name: 'other' });
  const account = `/accounts/${encodeURIComponent('tollgate:local:other')}`;
  await admin(`${account}/credit`, { amount_usd: '100000', reference: 'other' });
  await admin(`${account}/limits`, { requests_per_minute: 1200 }, 'PATCH');
  const { key } = (await admin(`${account}/keys`, { label: 'other' })) as { readonly key: string };
  return {
    url,
    port,
    pid: program.pid,
    headers: { authorization: `Bearer ${key}` },
    admin,
    dataBytes: () => bytesIn(dataDir),
    turnMs: async () => (await stallsAt(socketPath)).cpuMs,
    peakBytes: () => group?.peak() ?? null,
    output: () => program.output(),
    async stop() {
      await program.stop();
      await group?.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
type Market = Awaited<ReturnType<typeof startMarket>>;

interface Minute {
  readonly p50: number;
  readonly p99: number;
  readonly turnMs: number;
}

async function measureMinute(market: Market, generator: Generator, job: Job, label: string): Promise<Minute> {
  const turns = [];
  for (let at = 0; at < TURNS_PER_MINUTE; at++) {
    const result = await generator.run(job);
    if (result.errors > 0) throw new Error(`${result.errors} paid calls failed: ${result.firstError}`);
    turns.push(result.latency);
  }
  const minute = {
    p50: median(turns.map(({ p50 }) => p50))!,
    p99: median(turns.map(({ p99 }) => p99))!,
    turnMs: await market.turnMs(),
  };
  const cells = [
    label.padEnd(9),
    `${mib(residentBytes(market.pid))} MiB`,
    `${mib(market.dataBytes())} MiB on disk`,
    `turn ${minute.turnMs.toFixed(0)} ms`,
    `p50 ${minute.p50.toFixed(2)} ms`,
    `p99 ${minute.p99.toFixed(1)} ms`,
  ];
  process.stdout.write(`${cells.join('  ')}\n`);
  return minute;
}

/** Lets strangers act until its function is called, which resolves with how often each act had which result. */
function openMarket(url: string): () => Promise<ReadonlyMap<string, number>> {
  const wallets = Array.from({ length: Number(flags.wallets) }, (_, index) => marketWallet(url, index));
  const everyMs = (1_000 * wallets.length) / Number(flags.acts);
  const results = new Map<string, number>();
  let isOver = false;
  const running = wallets.map(async ({ act }) => {
    await pause(Math.random() * everyMs);
    while (!isOver) {
      const begun = performance.now();
      const result = await act();
      results.set(result, (results.get(result) ?? 0) + 1);
      await pause(Math.max(0, everyMs * (0.5 + Math.random()) - (performance.now() - begun)));
    }
  });
  return async () => {
    isOver = true;
    for (const { leave } of wallets) leave();
    await Promise.all(running);
    return results;
  };
}

async function main(): Promise<void> {
  if (flags.help) return void process.stdout.write(HELP);
  const upstream = startProgram([fileURLToPath(new URL('upstream/main.ts', import.meta.url))]);
  const generator = startGenerator();
  let elsewhere: Market | null = null;
  let market: Market | null = null;
  try {
    const upstreamPort = await announcedPort(upstream);
    market = await startMarket(upstreamPort);
    elsewhere = await startMarket(upstreamPort);
    const shape = { kind: 'open', perSecond: Number(flags.calls), durationMs: TURN_MS } as const;
    const job = jobFor({ ...market, path: '/api/v1/chat/completions' }, MODELS.small, shape);
    const measure = async (minutes: number, label: string) => {
      const all: Minute[] = [];
      for (let at = 1; at <= minutes; at++) all.push(await measureMinute(market!, generator, job, `${label} ${at}`));
      return all;
    };
    await generator.run(job);
    await market.turnMs();
    // The machine has as much to do then as with the market, so only what is shared with it makes the difference.
    const endElsewhere = openMarket(elsewhere.url);
    const before = await measure(Number(flags.empty), 'empty');
    await endElsewhere();
    await elsewhere.stop();
    elsewhere = null;
    const end = openMarket(market.url);
    const during = await measure(Number(flags.minutes), 'open');
    const results = await end();
    const p99 = (minutes: readonly Minute[]) => median(minutes.map((one) => one.p99))!;
    const ratio = p99(during) / p99(before);
    const peak = market.peakBytes();
    const { data } = (await market.admin('/audit', null)) as { readonly data: { readonly ok: boolean } };
    process.stdout.write(
      `\np99 of others: ${p99(before).toFixed(1)} ms, with the market ${p99(during).toFixed(1)} ms: ${ratio.toFixed(2)}× (≤ ${P99_TIMES_MAX}: ${ratio <= P99_TIMES_MAX ? 'reached' : '**missed**'}). ` +
        `Longest turn ${Math.max(...during.map((one) => one.turnMs)).toFixed(0)} ms. ` +
        `${peak === null ? 'No group of memory could be made' : `Most memory ${mib(peak)} of ${mib(GIB)} MiB, with the page cache`}. Books: ${data.ok ? 'in order' : '**wrong**'}.\n\n` +
        table(
          ['act and result', 'times'],
          [...results].toSorted(([a], [b]) => a.localeCompare(b)).map(([act, count]) => [act, String(count)]),
        ),
    );
  } catch (error) {
    process.stdout.write(`${market?.output() ?? ''}\n`);
    throw error;
  } finally {
    generator.stop();
    await elsewhere?.stop();
    await market?.stop();
    await upstream.stop();
  }
}

await main();
