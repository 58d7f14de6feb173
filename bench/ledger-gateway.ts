/* The ledger of one gateway in its own process: `node bench/ledger-gateway.ts <database url> <name>`. It warms up
   and prints {"ready":true}. Then it executes each line of its stdin, {"concurrency":n,"ms":n}, and prints what the
   work cost. */
import { createInterface } from 'node:readline';
import { openLoaded } from './ledger-load.ts';

const [url, name] = process.argv.slice(2) as [string, string];
const ledger = await openLoaded({ url, dataDir: '' }, name);
await ledger.drive(64, 1_000);
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { concurrency, ms } = JSON.parse(line) as { concurrency: number; ms: number };
  console.log(JSON.stringify(await ledger.drive(concurrency, ms)));
}
await ledger.close();
