import { expect, test } from 'vitest';
import { LedgerUnavailable, LOST } from '#billing';
import { BUSY, DatabaseError } from '#store';
import { toGatewayError } from '../../../src/server/http/errors.ts';

// What a client is told depends on whether the database answers.

const failure = (code: string, unavailable: boolean) => new DatabaseError('a failure', { code, unavailable });
const ledgers = (cause: DatabaseError) => new LedgerUnavailable('a failure', { cause });

test.each([
  ['no free connection', failure(BUSY, true)],
  ['too many operations', ledgers(failure(BUSY, true))],
  ['others hold the row of the account', ledgers(failure('55P03', false))],
])('busy: %s', (_what, error) => {
  expect(toGatewayError(error)).toMatchObject({
    code: 'service_unavailable',
    message: expect.stringMatching(/^Too many requests use the database or the same account/) as string,
    retryAfterS: 3,
  });
});

test.each([
  ['no connection', failure('connection', true)],
  ['no connection of the ledger', ledgers(failure('connection', true))],
  ['a database that lost something', ledgers(failure(LOST, false))],
  ['a closed ledger', new LedgerUnavailable('The ledger is closed')],
])('away: %s', (_what, error) => {
  expect(toGatewayError(error).message).toMatch(/^The ledger is not reachable/);
});
