import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createReceiptSigner } from '../src/billing/compose.ts';
import { archivePeriod, RECENT_DAYS, verifyArchive } from '../src/billing/archive/index.ts';
import { openDatabase } from '../src/foundation/store/index.ts';
import { receiptOfRecord } from '../src/console/pages/index.ts';
import { startProvider } from '../test/support/provider.ts';
import { ask, startSpine, UNHURRIED } from '../test/support/spine.ts';

/* `node bench/archive.ts [calls] [url]`: the bytes of a call of a whole gateway in an archive, and how many calls
   a second are archived, on the embedded database or on an empty PostgreSQL at `url`. The calls are made on a
   clock of 100 days ago. The archive is made by a process that does nothing else; a gateway takes three times as
   long, because it rests. */
const CALLS = Number(process.argv[2] ?? 3_000);
const url = process.argv[3];
const CONCURRENCY = 32;
const DAY_MS = 86_400_000;

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-archive-'));
const folder = join(dataDir, 'archives');
const past = Date.now() - 100 * DAY_MS;
const provider = await startProvider({ logMax: 0 });
const of = url === undefined ? {} : { databaseUrl: url };
const spine = await startSpine({
  dataDir,
  ...of,
  provider,
  toml: UNHURRIED,
  now: () => past,
  elapsed: () => performance.now(),
});
let next = 0;
const caller = async (): Promise<void> => {
  while ((next += 1) <= CALLS) {
    const response = await spine.post('/chat/completions', ask('hello !tokens:5'));
    await response.arrayBuffer();
  }
};
await Promise.all(Array.from({ length: CONCURRENCY }, caller));
await spine.quiet();
await spine.stop();
await provider.stop();

const database = await openDatabase({ url, dataDir });
const times = new Map<string, number>();
let phase = '';
let since = performance.now();
const enter = (name: string) => {
  if (name === phase) return;
  times.set(phase, performance.now() - since);
  phase = name;
  since = performance.now();
};
const loop = monitorEventLoopDelay({ resolution: 1 });
loop.enable();
const cpu = process.cpuUsage();
const { archive, path } = await archivePeriod({
  database,
  endsAt: Math.floor(past / DAY_MS + 1) * DAY_MS,
  folder,
  folders: [folder],
  recentDays: RECENT_DAYS,
  dryRun: false,
  keep: false,
  signer: createReceiptSigner(generateKeyPairSync('ed25519').privateKey),
  receiptOf: (record) => receiptOfRecord(record, []),
  isCounted: async () => true,
  now: Date.now,
  onProgress: ({ phase: name }) => enter(name),
});
enter('');
loop.disable();
const inMs = (percentile: number) => (loop.percentile(percentile) / 1e6).toFixed(1);
const { user, system } = process.cpuUsage(cpu);
const { calls } = archive!.sums;
console.log(`${calls} calls, ${Math.round(statSync(path).size / calls)} bytes a call in the archive`);
for (const [name, ms] of times) if (name !== '') console.log(`  ${name}: ${Math.round((calls / ms) * 1000)} calls/s`);
console.log(`  ${Math.round((user + system) / calls)} µs of CPU a call`);
console.log(
  `  delay of the event loop: p50 ${inMs(50)} ms, p99 ${inMs(99)} ms, longest ${(loop.max / 1e6).toFixed(1)} ms`,
);
since = performance.now();
await verifyArchive(path);
console.log(`  archive verify: ${Math.round((calls / (performance.now() - since)) * 1000)} calls/s`);
await database.close();
if (url === undefined) {
  const left = readdirSync(join(dataDir, 'ledger'));
  console.log(`  files of the log that are left: ${left.join(', ')}`);
}
rmSync(dataDir, { recursive: true });
