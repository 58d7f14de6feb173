import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { audit, createLedger, createPriceBook } from '../src/billing/compose.ts';
import { escrowOf, type Ledger, treasuryOf } from '../src/billing/index.ts';
import { openDatabase } from '../src/foundation/store/index.ts';
import { restoreBackup } from '../src/foundation/store/backup/index.ts';
import { CRASH_PRICE } from '../test/support/crash-price.ts';

/* `node bench/backup.ts --calls 50000`: the time of a backup of the embedded database and of its restore, and by how
   much the backup slows down a lock and its settlement. */

const { values } = parseArgs({ options: { calls: { type: 'string', default: '50000' } } });
const CALLS = Number(values.calls);
const WIDTH = 32;
const FACTS = { databaseUrl: null, identity: null, version: 'bench', env: {} };

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-backup-'));
const dataDir = join(folder, 'data');
const database = await openDatabase({ dataDir });
const ledger = await createLedger({ database });
await createPriceBook(database).remember([CRASH_PRICE]);
await ledger.transfer({ id: 'fund', from: treasuryOf('t'), to: escrowOf('a'), amount: 10n ** 12n, memo: '' });

let next = 0;
/** Makes `WIDTH` calls at once until `done` returns true. Returns the milliseconds of each call. */
async function calls(on: Ledger, done: () => boolean): Promise<number[]> {
  const took: number[] = [];
  const client = async () => {
    while (!done()) {
      const id = `call-${next++}`;
      const begun = performance.now();
      const lock = { id, account: 'a', amount: 50n, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000 };
      await on.lock({ ...lock, detail: '{}' });
      const usage = { price: CRASH_PRICE.id, provider: 'p', charge: 7n, draw: false, feeBps: 0, usage: '{"call":7}' };
      await on.settle({ id, ...usage, detail: '{}' });
      took.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, client));
  return took;
}
const at = (took: readonly number[], share: number) =>
  took.toSorted((a, b) => a - b)[Math.floor(took.length * share)]?.toFixed(1) ?? '-';

await calls(ledger, () => next >= CALLS);
const beside = next + CALLS / 10;
const quiet = await calls(ledger, () => next >= beside);
const file = join(folder, 'backup.tar');
let isDone = false;
const begun = performance.now();
const launcher = fileURLToPath(new URL('../bin/tollgate.mjs', import.meta.url));
const command = spawn(process.execPath, [launcher, 'backup', file, '--data', dataDir], { stdio: 'ignore' });
const making = once(command, 'exit').finally(() => (isDone = true));
const busy = await calls(ledger, () => isDone);
await making;
const madeMs = performance.now() - begun;
await ledger.close();
await database.close();

const restoring = performance.now();
const restored = await restoreBackup({ ...FACTS, dataDir: join(folder, 'restored') }, file);
const again = await openDatabase({ dataDir: restored.dataDir });
const readMs = performance.now() - restoring;
const report = await audit(again);
const auditedMs = performance.now() - restoring;
await again.close();
await restored.finish();

const megabytes = (statSync(file).size / 1e6).toFixed(1);
console.log(
  `| calls | file MB | backup s | restore s | with audit s | a call p50/p99 ms | beside the backup p50/p99 ms | audit |`,
);
console.log(`|---:|---:|---:|---:|---:|---:|---:|---|`);
console.log(
  `| ${next} | ${megabytes} | ${(madeMs / 1e3).toFixed(1)} | ${(readMs / 1e3).toFixed(1)} | ${(auditedMs / 1e3).toFixed(1)} | ${at(quiet, 0.5)}/${at(quiet, 0.99)} | ${at(busy, 0.5)}/${at(busy, 0.99)} | ${report.ok ? 'finds nothing' : 'differs'} |`,
);
rmSync(folder, { recursive: true });
