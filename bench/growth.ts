import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProvider } from '../test/support/provider.ts';
import { ask, startSpine, UNHURRIED } from '../test/support/spine.ts';

/* `node bench/growth.ts [calls]`: the bytes that a call of a whole gateway adds to the embedded database. Measures
   plain calls, and calls with an idempotency key, whose replies are stored for a day. The files are measured after
   the gateway has stopped. */
const CALLS = Number(process.argv[2] ?? 3_000);
const CONCURRENCY = 32;

const provider = await startProvider({ logMax: 0 });
for (const keyed of [false, true]) {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-growth-'));
  // The first call with a price stores more than the following ones.
  await run(dataDir, 'first', CONCURRENCY, keyed);
  const before = bytesOf(dataDir);
  await run(dataDir, 'then', CALLS, keyed);
  const each = Math.round((bytesOf(dataDir) - before) / CALLS);
  console.log(`${keyed ? 'with an idempotency key' : 'plain'}: ${each} bytes a call (${CALLS} calls)`);
  rmSync(dataDir, { recursive: true });
}
await provider.stop();

async function run(dataDir: string, name: string, calls: number, keyed: boolean): Promise<void> {
  const spine = await startSpine({ dataDir, provider, toml: UNHURRIED });
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < calls) {
      const headers = keyed ? { 'idempotency-key': `${name} ${next}` } : {};
      next += 1;
      const response = await spine.post('/chat/completions', ask('hello !tokens:5'), headers);
      if (response.status !== 200) throw new Error(`a call was answered ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, caller));
  await spine.quiet();
  await spine.stop();
}

function bytesOf(dataDir: string): number {
  const files = readdirSync(dataDir, { encoding: 'utf8', recursive: true }).filter((file) =>
    /^(?:tollgate\.db|ledger\/)/.test(file),
  );
  return files.reduce((sum, file) => sum + statSync(join(dataDir, file)).size, 0);
}
