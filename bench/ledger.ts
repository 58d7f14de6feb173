import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLedger } from '../src/billing/ledger-create.ts';
import { escrowOf, treasuryOf, type Ledger } from '../src/billing/ledger.ts';
import { openDatabase } from '../src/store/open.ts';
import { startPostgres } from '../test/support/postgres.ts';

/*
 * Lock+settle pairs per second of the ledger, with fsync on: `node bench/ledger.ts [embedded] [postgres]`.
 * PostgreSQL is that of DATABASE_URL (an empty database; it is written to), else one that is started for the run.
 * CPU is of this process, all threads; the server's own is not in it.
 */
const CONCURRENCY = (process.env['BENCH_CONCURRENT'] ?? '1,32,512').split(',').map(Number);
const MEASURE_MS = Number(process.env['BENCH_MS'] ?? 4_000);
const ACCOUNTS = 200;

const wanted = process.argv.slice(2);
const engines = wanted.length > 0 ? wanted : ['embedded', 'postgres'];

if (engines.includes('embedded')) {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  await measure('embedded', { dataDir });
  rmSync(dataDir, { recursive: true });
}
if (engines.includes('postgres')) {
  const url = process.env['DATABASE_URL'];
  if (url) await measure('postgres', { url, dataDir: '' });
  else {
    const postgres = await startPostgres({ settings: { shared_buffers: '512MB', max_wal_size: '8GB' } });
    await measure('postgres', { url: postgres.url, dataDir: '' });
    await postgres.stop();
  }
}

async function measure(engine: string, options: Parameters<typeof openDatabase>[0]): Promise<void> {
  const database = await openDatabase(options);
  const ledger = await createLedger({ database });
  const run = Date.now().toString(36);
  for (let account = 0; account < ACCOUNTS; account += 1)
    await ledger.transfer({
      id: `${run}-${account}`,
      from: treasuryOf('bench'),
      to: escrowOf(`bench-${account}`),
      amount: 10n ** 12n,
      memo: 'bench',
    });
  await drive(ledger, 512, 1_000, `${run}-warm`);
  for (const concurrency of CONCURRENCY) {
    const { pairs, ms, cpuMicros, lockMs } = await drive(ledger, concurrency, MEASURE_MS, `${run}-${concurrency}`);
    const sorted = lockMs.toSorted((a, b) => a - b);
    const percentile = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(2);
    console.log(
      `${engine.padEnd(9)} ${String(concurrency).padStart(4)} concurrent ${Math.round((pairs / ms) * 1000)
        .toString()
        .padStart(
          7,
        )} pairs/s ${(cpuMicros / pairs).toFixed(1).padStart(7)} µs CPU/pair   lock p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`,
    );
  }
  await ledger.close();
  await database.close();
}

async function drive(ledger: Ledger, concurrency: number, forMs: number, prefix: string) {
  let pairs = 0;
  let count = 0;
  const lockMs: number[] = [];
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const worker = async (index: number) => {
    for (let turn = 0; performance.now() - begun < forMs; turn += 1) {
      // As the gateway makes them: a prefix of the process and a counter.
      const id = `gen-${prefix}-${(count += 1).toString(36).padStart(8, '0')}`;
      const asked = performance.now();
      const locked = await ledger.lock({
        id,
        account: `bench-${(index + turn) % ACCOUNTS}`,
        amount: 900n,
        prices: ['price-0123456789abcdef0123456789abcdef'],
        expiresAt: Date.now() + 600_000,
        detail: '{"kind":"chat","service":"demo/model-1","key":"0123456789abcdef","request_id":"0123456789abcdef"}',
      });
      if (turn % 16 === 0) lockMs.push(performance.now() - asked);
      if (!locked.ok) throw new Error(`lock refused: ${locked.reason}`);
      const settled = await ledger.settle({
        id,
        price: 'price-0123456789abcdef0123456789abcdef',
        provider: `provider-${index % 8}`,
        charge: 345n,
        draw: false,
        feeBps: 100,
        usage: '{"prompt":1200,"completion":345}',
        detail: '{"finish_reason":"stop","latency_ms":812,"stream":true}',
      });
      if (!settled.ok) throw new Error(`settlement refused: ${settled.reason}`);
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, index) => worker(index)));
  const used = process.cpuUsage(cpu);
  return { pairs, ms: performance.now() - begun, cpuMicros: used.user + used.system, lockMs };
}
