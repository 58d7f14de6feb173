/** The time from the start of a gateway's process until it is ready, after `kill -9`. See `--help`. */
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startGateway, type Gateway } from '../test/support/gateway.ts';
import { startProvider } from '../test/support/provider.ts';
import { openLoaded, percentile } from './ledger-load.ts';
import { cpuMicros } from './program.ts';

// Compiled code is cached between starts, in the same way as in bin/tollgate.mjs.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('../node_modules/.cache/tollgate', import.meta.url));

const HELP = `node bench/ready.ts [--kills 30] [--load-ms 1000]
  stopped         a start after a clean stop, to compare with
  killed          kill -9 of a gateway under load of 32 connections
  most to replay  the tables are 8 MiB behind the log, the most that is allowed
CPU is of the gateway's process until it is ready, all threads: other work of the machine does not count in it.
`;
const CLIENTS = 32;
const CLEAN_STARTS = 10;
/** The most bytes of the log that the tables may be behind. */
const BEHIND_BYTES = 8 * 1024 * 1024;
const TABLES = ['tollgate.db', 'journal-head.json'];

const { values: flags } = parseArgs({
  options: {
    kills: { type: 'string', default: '30' },
    'load-ms': { type: 'string', default: '1000' },
    help: { type: 'boolean' },
  },
});
if (flags.help) {
  process.stdout.write(HELP);
  process.exit();
}
const kills = Number(flags.kills);
const provider = await startProvider({ logMax: 0 });
const gateway = await startGateway({
  toml: `
[limits]
requests_per_minute = 10000000
burst = 1000000
[[models]]
name = "test/model"
display_name = "Test: Model"
provider_name = "Test"
context_length = 10000
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "upstream-model"
api_base = "${provider.url}"
api_key = "unused"`,
});
const copies = mkdtempSync(join(tmpdir(), 'tollgate-ready-'));
try {
  const { key } = await gateway.openAccount('bench', 1_000);
  console.log('| start | starts | ready p50 ms | p99 ms | longest ms | CPU p50 ms | CPU p99 ms |');
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
  print('stopped', await cleanStarts(gateway));
  print('killed', await killedStarts(gateway, key));
  print('most to replay', await startsWithMostToReplay(gateway));
} finally {
  await gateway.stop();
  await provider.stop();
  rmSync(copies, { recursive: true });
}

/** The times of one start, in milliseconds. */
interface Start {
  readonly ready: number;
  readonly cpu: number;
}

async function restart(of: Gateway): Promise<Start> {
  await of.restart();
  return { ready: of.readyMs, cpu: cpuMicros(of.pid) / 1_000 };
}

async function cleanStarts(of: Gateway): Promise<Start[]> {
  const starts: Start[] = [];
  for (let start = 0; start < CLEAN_STARTS; start += 1) {
    await of.term();
    starts.push(await restart(of));
  }
  return starts;
}

async function killedStarts(of: Gateway, key: string): Promise<Start[]> {
  const starts: Start[] = [];
  for (let start = 0; start < kills; start += 1) {
    const clients = Array.from({ length: CLIENTS }, () => callUntilItDies(of.baseUrl, key));
    await pause(Number(flags['load-ms']));
    await of.kill9();
    await Promise.all(clients);
    starts.push(await restart(of));
  }
  return starts;
}

async function callUntilItDies(baseUrl: string, key: string): Promise<void> {
  const body = JSON.stringify({
    model: 'test/model',
    max_tokens: 20,
    messages: [{ role: 'user', content: '!tokens:3' }],
  });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  try {
    for (;;) await (await fetch(`${baseUrl}/api/v1/chat/completions`, { method: 'POST', headers, body })).text();
  } catch {
    // It was killed.
  }
}

/** Before each start the tables are reset to their state before the log grew. */
async function startsWithMostToReplay(of: Gateway): Promise<Start[]> {
  await of.term();
  const { dataDir } = of;
  for (const name of TABLES) copyFileSync(join(dataDir, name), join(copies, name));
  const begun = logBytes(dataDir);
  const ledger = await openLoaded({ dataDir }, Date.now().toString(36));
  while (logBytes(dataDir) - begun < BEHIND_BYTES) await ledger.drive(64, 100);
  await ledger.close();
  const starts: Start[] = [];
  for (let start = 0; start < kills; start += 1) {
    for (const name of readdirSync(dataDir).filter((each) => each.startsWith('tollgate.db-')))
      rmSync(join(dataDir, name));
    for (const name of TABLES) copyFileSync(join(copies, name), join(dataDir, name));
    starts.push(await restart(of));
    await of.kill9();
  }
  return starts;
}

function logBytes(dataDir: string): number {
  const folder = join(dataDir, 'ledger');
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function print(start: string, starts: readonly Start[]): void {
  const ready = starts.map((each) => each.ready);
  const cpu = starts.map((each) => each.cpu);
  const figures = [percentile(ready, 0.5), percentile(ready, 0.99), Math.max(...ready)];
  const shown = [...figures, percentile(cpu, 0.5), percentile(cpu, 0.99)].map((value) => Math.round(value));
  console.log(`| ${[start, starts.length, ...shown].join(' | ')} |`);
}
