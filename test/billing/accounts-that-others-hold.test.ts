import { expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { fund, lock, settle, watchedGateways } from '../support/watched-gateway.ts';
import { until } from '../support/cluster.ts';

// Another gateway holds the row of an account for longer than an operation waits while the database is away.

const gateways = watchedGateways();
const HOLD = adHoc('SELECT id FROM accounts WHERE id = $1 FOR UPDATE');

test('a call waits for its turn at the row, and is not told that the database is away', async () => {
  const gateway = await gateways.start();
  await fund(gateway, 'busy');
  const session = await gateway.database.session([]);
  await session.pipeline([{ statement: adHoc('BEGIN') }, { statement: HOLD, params: [escrowOf('busy')] }]);
  const locking = lock(gateway, 'call', 'busy');
  const timeouts = () => gateway.sent.filter((line) => line.endsWith(' 55P03')).length;
  // Each takes 2.5 s, and a call waits 5 s for a database that is away.
  await Promise.race([locking, until(() => timeouts() >= 3, 'the row was waited for three times', 60_000)]);
  await session.pipeline([{ statement: adHoc('ROLLBACK') }]);
  expect(await locking).toMatchObject({ ok: true });
  expect(await settle(gateway, 'call')).toMatchObject({ ok: true });
  await session.close();
});
