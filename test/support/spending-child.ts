import { writeSync } from 'node:fs';
import { createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, LedgerUnavailable, treasuryOf } from '#billing';
import { DatabaseError, openDatabase } from '#store';
import { CRASH_PRICE } from './crash-price.ts';

/* The ledger of one of several gateways on the PostgreSQL of argv[2]. It makes argv[4] calls for consumers that all
   gateways have in common, and ends, or is killed. argv[3] makes its ids unique. Acknowledgements are written to
   standard output, which is a file, as those of crash-child.ts.
   - `rich` can pay for everything, and so can its budget: a refusal ends the process with an error.
   - `poor-1` to `poor-4` cannot, and `limited` has a budget that cannot. Their calls move the last money between the
     leases of gateways all the time.
   - Now and then a part of `rich` is moved away and back, which takes all of its leases back. */
const [url, name, calls] = process.argv.slice(2) as [string, string, string];
const CONSUMERS = ['rich', 'rich', 'rich', 'poor-1', 'poor-2', 'poor-3', 'poor-4', 'limited'];
const CALLERS = 24;
/** As of a process that is killed: the machine was too busy for its patience while it started or ended. */
const TOO_BUSY = 75;

process.on('uncaughtException', (error) => {
  const isAway = error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.unavailable);
  if (!isAway) console.error(error);
  process.exit(isAway ? TOO_BUSY : 1);
});
const database = await openDatabase({ url, dataDir: '' });
const ledger = await createLedger({ database });
await createPriceBook(database).remember([CRASH_PRICE]);
const say = (line: string) => writeSync(1, `${line}\n`);

let made = 0;
async function caller(): Promise<void> {
  while (made < Number(calls)) {
    made += 1;
    try {
      await call(`${name}-${String(made).padStart(9, '0')}`);
    } catch (error) {
      // A machine that is too busy for its patience: the call may have happened, as one of a gateway that is killed.
      if (!(error instanceof LedgerUnavailable)) throw error;
    }
  }
}

async function call(id: string): Promise<void> {
  const account = CONSUMERS[Math.floor(Math.random() * CONSUMERS.length)]!;
  if (made % 500 === 0) await moveAwayAndBack(id);
  const request = { id, account, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000, detail: '{}' };
  const amount = BigInt(50 + Math.floor(Math.random() * 100));
  const budgets = account.startsWith('poor') ? [] : [{ id: `${account}:all`, limit: limitOf(account) }];
  const locked = await ledger.lock({ ...request, amount, budgets, endsWithCall: Math.random() < 0.5 });
  if (!locked.ok) {
    if (account === 'rich') throw new Error(`rich was refused: ${locked.reason}`);
    return;
  }
  say(`held ${id} 0`);
  if (Math.random() < 0.2) {
    await ledger.release({ id, detail: '{}' });
    say(`released ${id} 0`);
    return;
  }
  const charge = BigInt(Math.floor(Math.random() * Number(amount)));
  const settlement = { price: CRASH_PRICE.id, provider: `p`, charge, draw: false, feeBps: 100, detail: '{}' };
  const settled = await ledger.settle({ ...settlement, id, usage: `{"call":${charge}}` });
  if (settled.ok) say(`settled ${id} ${settled.charged}`);
}

const limitOf = (account: string) => (account === 'rich' ? 10n ** 15n : 400_000n);

/** Each of the two may be the last before the process is killed. */
async function moveAwayAndBack(id: string): Promise<void> {
  const [rich, away] = [escrowOf('rich'), treasuryOf('away')];
  await ledger.transfer({ id: `${id}-away`, from: rich, to: away, amount: 1_000n, memo: '' });
  await ledger.transfer({ id: `${id}-back`, from: away, to: rich, amount: 1_000n, memo: '' });
}

await Promise.all(Array.from({ length: CALLERS }, caller));
await ledger.close();
await database.close();
