/* `node bench/simulation/parameters.ts [ms] [flush ms]`: the round trip and the flush of the measurements in
   measured.ts, with the delay of the proxy and of a flush as `--far` and `--flush` of bench/gateways.ts set them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { startPostgres } from '../../test/support/postgres.ts';
import { percentile } from '../ledger-load.ts';
import { cpuMicros } from '../program.ts';

const [farMs, flushMs] = [process.argv[2] ?? '1', process.argv[3] ?? '2'];
const TIMES = 150;
/** As between two groups of a gateway that makes 50 calls a second. */
const PAUSE_MS = 10;
/** So many connections show what the proxy costs while it is busy. */
const CONNECTIONS = 16;

const server = await startPostgres({ settings: { commit_siblings: '0' } });
const proxyProgram = new URL('../targets/delay-proxy.ts', import.meta.url).pathname;
const proxy = spawn(process.execPath, [proxyProgram, new URL(server.url).port, farMs], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const clients: Client[] = [];
try {
  const [line] = (await once(createInterface({ input: proxy.stdout }), 'line')) as [string];
  const farUrl = new URL(server.url);
  farUrl.port = String((JSON.parse(line) as { port: number }).port);
  const near = await connect(server.url);
  const far = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(farUrl.href)));
  const before = cpuMicros(proxy.pid!);
  await Promise.all(far.map((client) => times(() => client.query('SELECT 1'), PAUSE_MS)));
  const proxyMs = (cpuMicros(proxy.pid!) - before) / TIMES / CONNECTIONS / 2 / 1_000;
  const nearMs = await times(() => near.query('SELECT 1'), PAUSE_MS);
  const tripMs = (await times(() => far[0]!.query('SELECT 1'), PAUSE_MS)) - nearMs - 2 * proxyMs;

  await near.query('CREATE TABLE flushed (n INT)');
  const insert = () => near.query('INSERT INTO flushed VALUES (1)');
  await near.query('SET synchronous_commit = off');
  const writeMs = await times(insert, 0);
  await near.query('SET synchronous_commit = on');
  const syncMs = (await times(insert, 0)) - writeMs;
  await near.query(`SET commit_delay = ${Number(flushMs) * 1_000}`);
  const delayMs = (await times(insert, 0)) - writeMs - syncMs;
  const round = (_: string, value: unknown) => (typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value);
  console.log(JSON.stringify({ tripMs, proxyMs, flush: { delayMs, syncMs } }, round));
} finally {
  await Promise.all(clients.map((client) => client.end()));
  proxy.kill();
  await server.stop();
}

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  clients.push(client);
  await client.connect();
  return client;
}

/** The median of the milliseconds that an answer took. */
async function times(ask: () => Promise<unknown>, pauseMs: number): Promise<number> {
  const took: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    if (pauseMs > 0) await delay(pauseMs);
    const asked = performance.now();
    await ask();
    took.push(performance.now() - asked);
  }
  return percentile(took, 0.5);
}
