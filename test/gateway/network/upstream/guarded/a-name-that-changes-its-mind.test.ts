import { expect, test } from 'vitest';
import { createGuardedFetch } from '../../../../../src/gateway/network/upstream/guarded-fetch.ts';
import { findFreePort } from '../../../../support/free-port.ts';
import { watchConnectionAttempts } from './connection-attempts.ts';
import { listenOn } from './receiver.ts';

const CALL = { timeoutMs: 5_000, bodyBytesMax: 1_024 };
const OPEN = '127.0.0.2';
const CLOSED = '127.0.0.1';

test('the address that was checked is the one that is connected to, whatever the name says next', async () => {
  const open = await listenOn(OPEN, (_request, response) => void response.end('open'), await findFreePort());
  const closed = await listenOn(CLOSED, (_request, response) => void response.end('closed'), open.port);
  const attempts = watchConnectionAttempts();
  let lookups = 0;
  // A name server that alternates, with a lifetime of nothing.
  const lookup = async () => [{ address: lookups++ % 2 === 0 ? OPEN : CLOSED, family: 4 }];
  const fetch = createGuardedFetch({ allowPrivate: true, lookup, permits: (address) => address === OPEN });

  for (let round = 0; round < 10; round += 1) {
    const call = fetch(`http://rebinding.example.com:${open.port}/`, CALL);
    if (round % 2 === 0) expect((await call).body.toString()).toBe('open');
    else await expect(call).rejects.toMatchObject({ refused: true });
  }

  expect(lookups).toBe(10);
  expect(new Set(attempts)).toEqual(new Set([OPEN]));
  expect(open.connections()).toBe(5);
  expect(closed.connections()).toBe(0);
});
