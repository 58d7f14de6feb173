import { describe, expect, test } from 'vitest';
import type { Call, Candidate } from '../../../../src/gateway/call/call.ts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import { createFailureAttribution } from '../../../../src/gateway/call/routing/failure-attribution.ts';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
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
  const attributedTo = (account: string) =>
    createFailureAttribution(health, { caller: { account }, free: null } as Call);
  return { now, health, attributedTo };
}

describe('a refused request', () => {
  test('that another serves rests the offer for the account, and is in its figures', () => {
    const { now, health, attributedTo } = world();
    const one = attributedTo('one');
    one.refused(candidate(refuser), now());
    expect(health.healthState(refuser, 'one')).toBe('good');
    one.over(candidate(stranger));
    expect(health.healthState(refuser, 'one')).toBe('resting');
    expect(health.healthState(refuser, 'two')).toBe('good');
    expect(health.stats(refuser).uptime).toBe(0);
  });

  test('rests it for all where the operator’s own provider served those of three accounts', () => {
    const { now, health, attributedTo } = world();
    for (const account of ['one', 'two', 'three']) {
      expect(health.healthState(refuser)).toBe('good');
      const each = attributedTo(account);
      each.refused(candidate(refuser), now());
      each.over(candidate(own));
    }
    expect(health.healthState(refuser)).toBe('resting');
  });

  test('does not rest it for all where strangers served: they may be of those who wrote the requests', () => {
    const { now, health, attributedTo } = world();
    for (const account of ['one', 'two', 'three', 'four']) {
      const each = attributedTo(account);
      each.refused(candidate(refuser), now());
      each.over(candidate(stranger));
    }
    expect(health.healthState(refuser)).toBe('good');
  });

  test('that another model serves counts against nobody', () => {
    const { now, health, attributedTo } = world();
    const one = attributedTo('one');
    one.refused(candidate(refuser), now());
    one.over(candidate(offer({ provider: 'Own', service: 'acme/large' })));
    expect(health.healthState(refuser, 'one')).toBe('good');
    expect(health.stats(refuser).uptime).toBeNull();
  });

  test('that nobody serves counts against nobody, also not against who failed by it', () => {
    const { now, health, attributedTo } = world();
    const refused = attributedTo('one');
    refused.refused(candidate(refuser), now());
    refused.refused(candidate(own), now());
    refused.over(null);
    expect([health.healthState(refuser, 'one'), health.healthState(own, 'one')]).toEqual(['good', 'good']);
    const failed = attributedTo('one');
    failed.refused(candidate(refuser), now());
    failed.failed(candidate(own), now(), null);
    failed.over(null);
    expect([health.stats(refuser).uptime, health.stats(own).uptime]).toEqual([null, null]);
  });
});
