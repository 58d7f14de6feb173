import { writeSync } from 'node:fs';
import { createRollUp } from '#analytics';
import { createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { fund, makeCall } from './counted-calls.ts';

/* Makes calls on the embedded database of argv[2], while a roll-up adds them up in small parts. The process kills
   itself after call number argv[4], while the roll-up and the database's threads are running. argv[3] makes the ids
   of one round unique. */
const [dataDir, round, last] = process.argv.slice(2) as [string, string, string];
const database = await openDatabase({ dataDir });
const ledger = await createLedger({ database });
await fund(database, ledger, ['a', 'b']);
const onError = (error: unknown) => {
  throw error;
};
const rollUp = createRollUp({ database, now: Date.now, everyMs: 1, callsMax: 20, onError });
void rollUp.run();
let made = 0;
const worker = async (index: number) => {
  for (let turn = 0; ; turn += 1) {
    await makeCall(
      ledger,
      {
        id: `${round}-${index}-${turn}`,
        account: turn % 3 === 0 ? 'a' : 'b',
        key: null,
        primitive: turn % 2 === 0 ? 'model' : 'tool',
        service: `s/${index % 3}`,
        provider: 'p',
        end: turn % 5 === 4 ? 'release' : 'settle',
        charge: turn % 100,
        prompt: turn,
        completion: index,
        reasoning: 0,
        firstByteMs: 5,
        durationMs: 9,
      },
      Date.now(),
    );
    writeSync(1, `settled ${round}-${index}-${turn} 0\n`);
    if ((made += 1) === Number(last)) process.kill(process.pid, 'SIGKILL');
  }
};
await Promise.all(Array.from({ length: 16 }, (_, index) => worker(index)));
