import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { actFor, actsFor } from '../../../web/src/api/acting.ts';
import { ACTING } from '../../spine/acting-routes.ts';

const ACCOUNT = 'tollgate:local:acme';
/** Node 24 has no storage of tabs. */
const tab = new Map<string, string>();
beforeAll(() => {
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => tab.get(name) ?? null,
    setItem: (name: string, value: string) => tab.set(name, value),
    removeItem: (name: string) => tab.delete(name),
  });
});
afterAll(() => vi.unstubAllGlobals());

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
