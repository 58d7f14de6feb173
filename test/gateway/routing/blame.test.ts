import { describe, expect, test } from 'vitest';
import type { Call, Candidate, Offer } from '../../../src/gateway/call.ts';
import { createBlame } from '../../../src/gateway/routing/blame.ts';
import { createHealth } from '../../../src/gateway/routing/health.ts';
import { clock, offer } from './offers.ts';

// Whom a refused request counts against, once it is known what another provider made of it.

const refuser = offer({ provider: 'Refuser' });
const own = offer({ provider: 'Own' });
const stranger: Offer = {
  ...offer({ provider: 'Stranger' }),
  endpoint: { kind: 'tunnel', provider: 'id-Stranger', basePath: '/s' },
};
const candidate = (of: Offer): Candidate => ({ offer: of, price: of.price, estimate: 10n });

function world() {
  const now = clock();
  const health = createHealth({ now, cooldownMs: 30_000 });
  const blame = (account: string) => createBlame(health, { caller: { account }, free: null } as Call);
  return { now, health, blame };
}

describe('a refused request', () => {
  test('that another serves rests the offer for the account, and is in its figures', () => {
    const { now, health, blame } = world();
    const one = blame('one');
    one.refused(candidate(refuser), now());
    expect(health.standing(refuser, 'one')).toBe('good');
    one.over(candidate(stranger));
    expect(health.standing(refuser, 'one')).toBe('resting');
    expect(health.standing(refuser, 'two')).toBe('good');
    expect(health.stats(refuser).uptime).toBe(0);
  });

  test('rests it for all where the operator’s own provider served those of three accounts', () => {
    const { now, health, blame } = world();
    for (const account of ['one', 'two', 'three']) {
      expect(health.standing(refuser)).toBe('good');
      const each = blame(account);
      each.refused(candidate(refuser), now());
      each.over(candidate(own));
    }
    expect(health.standing(refuser)).toBe('resting');
  });

  test('does not rest it for all where strangers served: they may be of those who wrote the requests', () => {
    const { now, health, blame } = world();
    for (const account of ['one', 'two', 'three', 'four']) {
      const each = blame(account);
      each.refused(candidate(refuser), now());
      each.over(candidate(stranger));
    }
    expect(health.standing(refuser)).toBe('good');
  });

  test('that another model serves counts against nobody', () => {
    const { now, health, blame } = world();
    const one = blame('one');
    one.refused(candidate(refuser), now());
    one.over(candidate(offer({ provider: 'Own', service: 'acme/large' })));
    expect(health.standing(refuser, 'one')).toBe('good');
    expect(health.stats(refuser).uptime).toBeNull();
  });

  test('that nobody serves counts against nobody, also not against who failed by it', () => {
    const { now, health, blame } = world();
    const refused = blame('one');
    refused.refused(candidate(refuser), now());
    refused.refused(candidate(own), now());
    refused.over(null);
    expect([health.standing(refuser, 'one'), health.standing(own, 'one')]).toEqual(['good', 'good']);
    const failed = blame('one');
    failed.refused(candidate(refuser), now());
    failed.failed(candidate(own), now(), null);
    failed.over(null);
    expect([health.stats(refuser).uptime, health.stats(own).uptime]).toEqual([null, null]);
  });
});
