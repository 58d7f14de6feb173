import { loadStatements } from '#store';
import { expect, test } from 'vitest';
import { ENGINES, openEngine } from '../../support/engines.ts';

const NETWORK = "'eip155:1'";
/** What is asked at each comparison of a treasury, with the values of its parameters and the indexes that it needs. */
const ASKED = [
  [
    'chains',
    'bookedAt',
    [NETWORK, "'treasury:eip155:1'", '20000'],
    ['deposits_height', 'deposits_open', 'withdrawals_height'],
  ],
  ['withdrawals', 'listLeavingWithdrawals', [NETWORK, '20000', "''"], ['withdrawals_signed', 'withdrawals_height']],
  ['withdrawals', 'signedWithdrawals', [NETWORK, "''"], ['withdrawals_signed']],
  ['deposits', 'listOpenPayments', [NETWORK, "''"], ['deposits_open']],
  ['chains', 'countMoney', [], ['deposits_open', 'withdrawals_due']],
] as const;

test.each(ENGINES)('on %s, a comparison reads what is new, and not all that ever came and left', async (engine) => {
  const opened = await openEngine(engine);
  const ask = (name: string, text: string) => opened.database.query({ name: `test/${name}`, text });
  const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)';
  try {
    await ask(
      'many-withdrawals',
      `INSERT INTO withdrawals (id, network, account, source, address, amount, handed_out, state, signed, height, created_at, updated_at, looks)
       ${numbers} SELECT 'w' || i, ${NETWORK}, 'a', 'escrow:a', '0x', 1, 0, 'paid', '{}', i, i, i, 0 FROM n RETURNING id`,
    );
    await ask(
      'many-deposits',
      `INSERT INTO deposits (id, network, account, payer, amount, state, event, height, credited, created_at, updated_at, looks)
       ${numbers} SELECT 'd' || i, ${NETWORK}, 'a', '0x', 1, 'final', 'e' || i, i, 1, i, i, 0 FROM n RETURNING id`,
    );
    if (engine === 'postgres') await ask('figures', 'ANALYZE');
    const explain = engine === 'postgres' ? 'EXPLAIN' : 'EXPLAIN QUERY PLAN';
    for (const [file, name, values, indexes] of ASKED) {
      const statements = loadStatements(import.meta.url, `../../../src/billing/chains/sql/${file}.sql`, [name]);
      const text = statements[name].text
        .replace(/^ *--.*\n/gm, '')
        .replace(/\$(\d)/g, (_place, number) => values[Number(number) - 1]!);
      const plan = (await ask(`plan-of-${name}`, `${explain} ${text}`))
        .map((row) => String(row['QUERY PLAN'] ?? row['detail']))
        .join('\n');
      for (const index of indexes) expect.soft(plan, name).toContain(index);
      expect
        .soft(plan, name)
        .not.toMatch(
          /SCAN (withdrawals|deposits)(?! USING INDEX (withdrawals|deposits)_)|Seq Scan on (withdrawals|deposits)/,
        );
    }
  } finally {
    await opened.dispose();
  }
});
