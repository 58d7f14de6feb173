/* The ledger of one gateway in its own process: `node bench/ledger-gateway.ts <options as JSON>`. It warms up and
   prints {"ready":true}. Then it executes each line of its stdin, {"concurrency":n,"ms":n} or {"rate":n,"ms":n}, and
   prints what the work cost. */
import { createInterface } from 'node:readline';
import { openLoaded } from './ledger-load.ts';

export interface LedgerGatewayOptions {
  /** URL of the database. */
  readonly url: string;
  readonly name: string;
  readonly consumers: number;
  /** Its locks outlive their process, as those of tasks do. */
  readonly kept: boolean;
  /** URL of the folder of the checkout whose ledger is measured. */
  readonly checkout: string;
}

const { url, name, consumers, kept, checkout } = JSON.parse(process.argv[2]!) as LedgerGatewayOptions;
const ledger = await openLoaded({ url, dataDir: '' }, name, new URL(checkout), { accounts: consumers, kept });
await ledger.drive(64, 1_000);
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as { concurrency?: number; rate?: number; ms: number; broke: number };
  const { concurrency, rate, ms, broke } = order;
  const others = broke > 0 ? ledger.driveBroke(broke, ms) : null;
  const cost = rate === undefined ? ledger.drive(concurrency!, ms) : ledger.driveAtRate(rate, ms);
  await others;
  console.log(JSON.stringify(await cost));
}
await ledger.close();
