import { expect, test } from 'vitest';
import { loadStatements } from '../../../../src/foundation/store/statement.ts';
import { ENGINES, openEngine } from '../../../support/engines.ts';

const SESSIONS = new URL('../../../../src/gateway/auth/sessions/sql/sessions.sql', import.meta.url);
const SQL = loadStatements(import.meta.url, SESSIONS.href, ['sweepSessions']);

test.each(ENGINES)('on %s, the sweep of sessions finds those that are over by an index', async (engine) => {
  const opened = await openEngine(engine);
  const ask = (name: string, text: string) => opened.database.query({ name: `test/${name}`, text });
  try {
    await ask(
      'many-sessions',
      `INSERT INTO web_sessions (id, account, signed_in_by, client, created_at, seen_at, expires_at)
       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
       SELECT 'session-' || i, 'account-' || i, 'wallet', '', i, i, i FROM n RETURNING id`,
    );
    if (engine === 'postgres') await ask('figures', 'ANALYZE web_sessions');
    const values = ['20', '10', '5'];
    const sweep = SQL.sweepSessions.text.replace(/\$(\d)/g, (_place, number) => values[Number(number) - 1]!);
    const explain = engine === 'postgres' ? 'EXPLAIN' : 'EXPLAIN QUERY PLAN';
    const plan = (await ask('plan-of-sweep', `${explain} ${sweep.replace(/^--.*\n/gm, '')}`))
      .map((row) => String(row['QUERY PLAN'] ?? row['detail']))
      .join('\n');
    expect(plan).toContain('web_sessions_seen');
    expect(plan).toContain('web_sessions_expire');
    expect(plan).not.toMatch(/^SCAN web_sessions|Seq Scan on web_sessions/m);
  } finally {
    await opened.dispose();
  }
});
