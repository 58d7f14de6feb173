import { writeSync } from 'node:fs';
import { createLedger, createPriceBook } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { openDatabase } from '#store';
import { CRASH_PRICE } from './crash-price.ts';

/* Locks and settles on the embedded database of argv[2]. Each acknowledgement is written synchronously to standard
   output, which is a file, so it survives any end of the process. The process kills itself at acknowledgement number
   argv[4], while other calls and the database's thread are running. argv[3] makes the ids of one round unique. With
   FLUSH_MS, the ends of calls are late, but for those of kept locks. */
const [dataDir, round, last] = process.argv.slice(2) as [string, string, string];
let said = 0;
const flushMs = process.env['FLUSH_MS'] === undefined ? null : Number(process.env['FLUSH_MS']);
const say = (line: string, mayBeLate = false) => {
  writeSync(1, `${line} ${performance.now()} ${mayBeLate ? 'late' : 'durable'}\n`);
  if ((said += 1) === Number(last)) process.kill(process.pid, 'SIGKILL');
};

const database = await openDatabase({ dataDir });
const ledger = await createLedger({ database, flushMs });
await createPriceBook(database).remember([CRASH_PRICE]);
await ledger.transfer({
  id: `fund-${round}`,
  from: treasuryOf('test'),
  to: escrowOf('crash'),
  amount: 1_000_000_000n,
  memo: '',
});

let made = 0;
const worker = async (index: number) => {
  for (let turn = 0; ; turn += 1) {
    // Most ids are in their order, as those of a gateway are: the ledger knows that they are new. It has to look for
    // the others.
    const id = index < 4 ? `${round}-${index}-${turn}` : `${round}-${String((made += 1)).padStart(9, '0')}`;
    const locked = await ledger.lock({
      id,
      account: 'crash',
      amount: 100n,
      prices: [CRASH_PRICE.id],
      expiresAt: Date.now() + 7 * 86_400_000,
      budgets: [{ id: 'budget', limit: 10n ** 14n }],
      detail: '{}',
    });
    if (!locked.ok) throw new Error(locked.reason);
    say(`held ${id} 0`);
    const mayBeLate = flushMs !== null && turn % 8 !== 5;
    if (turn % 8 === 5) {
      await ledger.keep(id, Date.now() + 7 * 86_400_000);
      say(`kept ${id} 0`);
    }
    if (turn % 4 === 3) {
      await ledger.release({ id, detail: '{}', mayBeLate });
      say(`released ${id} 0`, mayBeLate);
    } else {
      const charge = BigInt(turn % 100);
      await ledger.settle({
        id,
        price: CRASH_PRICE.id,
        provider: 'p',
        charge,
        draw: false,
        feeBps: 100,
        usage: `{"call":${charge}}`,
        detail: '{}',
        mayBeLate,
      });
      say(`settled ${id} ${charge}`, mayBeLate);
    }
  }
};
await Promise.all(Array.from({ length: 32 }, (_, index) => worker(index)));
