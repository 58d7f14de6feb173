/* `node bench/audit.ts [pairs]`: time and memory of an audit of the embedded books. A pair is a lock and its
   settlement. The audit runs in a child process. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { audit } from '../src/billing/index.ts';
import { openDatabase } from '../src/foundation/store/open.ts';
import { openLoaded } from './ledger-load.ts';

const [first = '100000', dataDir] = process.argv.slice(2);
if (first === '--audit') {
  const database = await openDatabase({ dataDir: dataDir! });
  const begun = performance.now();
  const { totals } = await audit(database, { overdueMs: null });
  const mib = Math.round(process.resourceUsage().maxRSS / 1024);
  console.log(`${totals.operations} movements in ${Math.round(performance.now() - begun)} ms, at most ${mib} MiB`);
  await database.close();
} else {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-audit-'));
  const ledger = await openLoaded({ dataDir: folder }, 'audit');
  let pairs = 0;
  while (pairs < Number(first)) pairs += (await ledger.drive(512, 1_000)).pairs;
  await ledger.close();
  const bytes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  process.stdout.write(`${pairs} pairs, ${Math.round(bytes / 1024 / 1024)} MiB of files: `);
  execFileSync(process.execPath, [import.meta.filename, '--audit', folder], { stdio: 'inherit' });
  rmSync(folder, { recursive: true });
}
