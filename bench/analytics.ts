/**
 * `node bench/analytics.ts`: how long the figures of the market take, and what adding calls up costs a gateway. The
 * embedded database has `--users` users on each of `--days` days. Two gateways with an upstream in this process take
 * `--calls` chats in turns: one adds calls up every 2 s, as is usual, the other one never. What adding them up costs is
 * measured to its end. `--calls 0`: none.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findMarket } from '../src/analytics/index.ts';
import { createFigurePages } from '../src/pages/figures/figure-pages.ts';
import { openDatabase, type Statement } from '../src/store/index.ts';
import { cpuByThread, cpuMicros, startProgram } from './program.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const ROUNDS = 9;
/** Between two turns that add calls up: the default of `analytics.every_ms`. */
const EVERY_MS = 2_000;
const AT_ONCE = 16;
const FIRST = 20_000;
const SERVICES = 200;
const PROVIDERS = 3;

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    days: { type: 'string', default: '7' },
    calls: { type: 'string', default: '1500' },
  },
});
const [users, days, calls] = [Number(values.users), Number(values.days), Number(values.calls)];
const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
try {
  await readFigures();
  if (calls > 0) await addCallsUp();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

async function readFigures(): Promise<void> {
  const database = await openDatabase({ dataDir: join(folder, 'figures') });
  const run = (name: string, text: string) => database.query({ name: `bench/${name}`, text } satisfies Statement);
  const numbers = (to: number, name = 'n') =>
    `(WITH RECURSIVE counted (${name}) AS (SELECT 0 UNION ALL SELECT ${name} + 1 FROM counted WHERE ${name} < ${to} - 1) SELECT ${name} FROM counted)`;
  await run(
    'users',
    // Half of the users of a day come on the next one, too.
    `INSERT INTO user_days (day, account_hash) SELECT ${FIRST} + d, (d * ${users} / 2 + n) * 7919 FROM ${numbers(days, 'd')}, ${numbers(users)}`,
  );
  await run(
    'previous',
    `UPDATE user_days SET previous = COALESCE((SELECT MAX(e.day) FROM user_days AS e WHERE e.account_hash = user_days.account_hash AND e.day < user_days.day), -1)`,
  );
  await run(
    'known',
    `INSERT INTO known_users SELECT account_hash, 1, MIN(day), -2 FROM user_days GROUP BY account_hash`,
  );
  for (const counted of ['count-active-users', 'note-counted-users', 'count-known-accounts', 'note-counted-accounts'])
    await run(counted, readFileSync(new URL(`../src/analytics/sql/${counted}.sql`, import.meta.url), 'utf8'));
  await run(
    'listings',
    `INSERT INTO service_days SELECT ${FIRST} + d, 0, 'model', 's/' || s, 'p' || p, 50, 1, 1000, 9, 9, 0, 0, 0, 0, 9, 9
     FROM ${numbers(days, 'd')}, ${numbers(SERVICES, 's')}, ${numbers(PROVIDERS, 'p')}`,
  );
  await run(
    'market',
    `INSERT INTO public_days SELECT day, 0, primitive, SUM(requests), SUM(failed), SUM(charged), SUM(prompt), SUM(completion), 0, 0 FROM service_days GROUP BY day, primitive`,
  );
  const range = { first: FIRST, last: FIRST + days - 1 };
  const shown = { until: Number.MAX_SAFE_INTEGER, usersMin: 0, development: false };
  const read = (name: string) =>
    createFigurePages(database, { parts: 0 }).page(name, false, (query) => findMarket(query, range, shown).then(plain));
  const uncached: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    await read(`${round}`);
    uncached.push(performance.now() - begun);
  }
  const pages = createFigurePages(database, { parts: 0 });
  const cached: number[] = [];
  for (let round = 0; round <= ROUNDS * 100; round += 1) {
    const begun = performance.now();
    await pages.page('kept', false, (query) => findMarket(query, range, shown).then(plain));
    if (round > 0) cached.push(performance.now() - begun);
  }
  await database.close();
  process.stdout.write(
    `${days} days with ${users} users a day: ${middle(uncached).toFixed(1)} ms uncached (best ${Math.min(...uncached).toFixed(1)}), ` +
      `${middle(cached).toFixed(3)} ms cached\n`,
  );
}

/** Sums without bigints, as a page has them. */
function plain(figures: object): object {
  const text = JSON.stringify(figures, (_name, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
  return JSON.parse(text) as object;
}

async function addCallsUp(): Promise<void> {
  const reply = JSON.stringify({
    id: 'chat-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
  });
  const upstream = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(reply);
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const gateways = await Promise.all([startGateway('on', EVERY_MS, port), startGateway('off', 0, port)]);
  try {
    for (const gateway of gateways) await gateway.chats(calls);
    const used = (pid: number) => {
      const { user, system } = cpuByThread(pid).get('WorkerThread')!;
      return { main: cpuMicros(pid, pid), workers: user + system, all: cpuMicros(pid) };
    };
    const micros = gateways.map(() => ({ main: [] as number[], workers: [] as number[], all: [] as number[] }));
    for (let round = 0; round < ROUNDS; round += 1)
      // Always in one order: the thread that adds calls up ends after 10 s without work, and starts anew.
      for (const index of [0, 1]) {
        const { pid, chats } = gateways[index]!;
        const before = used(pid);
        await chats(calls);
        // Until the round's calls are added up, too.
        await pause(EVERY_MS * 1.5);
        const after = used(pid);
        for (const kind of ['main', 'workers', 'all'] as const)
          micros[index]![kind].push((after[kind] - before[kind]) / calls);
      }
    for (const [threads, of] of [
      ['main thread', 'main'],
      ['threads of the database', 'workers'],
      ['all threads', 'all'],
    ] as const) {
      const [on, off] = micros.map((each) => middle(each[of])) as [number, number];
      process.stdout.write(
        `a chat, ${threads}: ${on.toFixed(0)} µs of CPU with calls added up, ${off.toFixed(0)} µs without, ratio ${(on / off).toFixed(3)}\n`,
      );
    }
  } finally {
    for (const gateway of gateways) await gateway.stop();
    upstream.close();
    upstream.closeAllConnections();
  }
}

async function startGateway(name: string, everyMs: number, port: number) {
  const config = join(folder, `${name}.toml`);
  writeFileSync(
    config,
    `[limits]
requests_per_minute = 10000000
burst = 10000000
tokens_per_minute = 1000000000000
[analytics]
every_ms = ${everyMs}
[[models]]
name = "bench/model"
display_name = "Bench"
provider_name = "Bench"
context_length = 10000
max_output_tokens = 100
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "m"
api_base = "http://127.0.0.1:${port}/v1"
`,
  );
  const data = join(folder, name);
  const gateway = startProgram([MAIN, 'start', '--config', config, '--data', data, '--port', '0']);
  const { base_url: base, api_key: key } = await gateway.until(() => readDev(data), 'it listens');
  const body = JSON.stringify({ model: 'bench/model', messages: [{ role: 'user', content: 'Yes?' }], max_tokens: 9 });
  const chat = async () => {
    const answer = await fetch(`${base}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`a chat was answered with ${answer.status}: ${text}`);
  };
  return {
    pid: gateway.pid,
    stop: () => gateway.stop(),
    async chats(count: number) {
      let left = count;
      const worker = async () => {
        while (left-- > 0) await chat();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    },
  };
}

function readDev(dataDir: string): { readonly base_url: string; readonly api_key: string } | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8')) as { base_url: string; api_key: string };
  } catch {
    return null;
  }
}
