import { afterAll, expect, test } from 'vitest';
import { actFor, actsFor } from '../../../web/src/api/acting.ts';
import { ACTING } from '../../spine/acting-routes.ts';

const ACCOUNT = 'tollgate:local:acme';
afterAll(() => actFor(null));

test('a tab that acts for an organisation names it wherever a member can act for it', () => {
  actFor(ACCOUNT);
  const unnamed = Object.keys(ACTING).filter((path) => actsFor(`/api/v1${path}`) !== ACCOUNT);
  expect(unnamed).toEqual([]);
});

test.each(['/api/v1/auth/session', '/api/v1/chat/completions', '/api/v1/rpc', '/admin/v1/keys'])(
  'it does not at %s, which would refuse it',
  (path) => {
    actFor(ACCOUNT);
    expect(actsFor(path)).toBeNull();
  },
);
