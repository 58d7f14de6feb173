import { describe, expect, test } from 'vitest';
import { OWN_ACCOUNT } from '../../../../src/server/accounts/caller.ts';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

// Whom an offer rests for: the accounts whose calls failed, and all only when several say so.

const COOLDOWN = 30_000;
const PROBE = 10_000;
const a = offer({ provider: 'A', price: 0.01 });
const b = offer({ provider: 'B', price: 10 });

function world() {
  const now = clock();
  const health = createHealth({ now, cooldownMs: COOLDOWN, probeMs: PROBE, failuresMax: 10 });
  const router = createRouter({ health, random: seeded(1), attemptsMax: 3, now });
  const choose = (account: string, offers = [a]) => names(router.choose(offers, NO_PREFERENCES, null, { account }));
  const fail = (account: string, times = 1, witness = true) => {
    for (let time = 0; time < times; time++) {
      health.failed(a, account, now());
      health.blamed(a, account, now(), witness);
    }
  };
  const succeed = () => health.succeeded(a, { firstByteMs: 1, durationMs: 0, completionTokens: 1 });
  return { now, health, choose, fail, succeed };
}

describe('failures of one account', () => {
  test('rest the offer for it, and for nobody else', () => {
    const { health, choose, fail } = world();
    fail('bad');
    expect(choose('bad', [a, b])).toEqual(['B', 'A']);
    expect(choose('good', [a, b])).toEqual(['A', 'B']);
    fail('bad', 100);
    expect(choose('bad')).toEqual([]);
    expect(health.retryAfterS([a], 'bad')).toBe(30);
    expect(choose('good', [a, b])).toEqual(['A', 'B']);
    expect(health.available(a)).toBe(true);
  });

  test('do not make it a second choice for others', () => {
    const { now, choose, fail, succeed } = world();
    fail('bad');
    now.advance(10);
    succeed();
    expect(choose('bad', [a, b])).toEqual(['B', 'A']);
    expect(choose('good', [a, b])).toEqual(['A', 'B']);
  });

  test('are over when anybody is served', () => {
    const { now, choose, fail, succeed } = world();
    fail('bad', 10);
    now.advance(10);
    succeed();
    expect(choose('bad')).toEqual(['A']);
  });

  test('are probed by it, after its cool-down', () => {
    const { now, choose, fail } = world();
    fail('bad', 10);
    now.advance(COOLDOWN);
    expect(choose('bad')).toEqual(['A']);
    expect(choose('bad')).toEqual([]);
    expect(choose('good')).toEqual(['A']);
  });
});

describe('failures of several accounts', () => {
  test('rest it for all when there are three', () => {
    const { choose, fail } = world();
    fail('one', 50);
    fail('two', 50);
    expect(choose('good', [a, b])).toEqual(['A', 'B']);
    fail('three');
    expect(choose('good', [a, b])).toEqual(['B', 'A']);
    expect(choose('good')).toEqual(['A']);
  });

  test('never close it for an account that has not failed there, however many they are', () => {
    const { choose, fail } = world();
    for (let account = 0; account < 30; account++) fail(`bad-${account}`, 50);
    expect(choose('good')).toEqual(['A']);
    expect(choose('good', [a, b])).toEqual(['B', 'A']);
    expect(choose('bad-29')).toEqual([]);
  });

  test('rest it for nobody else where they are no witnesses', () => {
    const { choose, fail } = world();
    for (let account = 0; account < 100; account++) fail(`free-${account}`, 20, false);
    expect(choose('good', [a, b])).toEqual(['A', 'B']);
  });

  test('count in one row only: a success between them begins anew', () => {
    const { now, choose, fail, succeed } = world();
    for (const account of ['one', 'two', 'three', 'four', 'five']) {
      fail(account, 2);
      now.advance(10);
      succeed();
    }
    expect(choose('good', [a])).toEqual(['A']);
  });
});

describe('the probe of an offer that rests for all', () => {
  test('is for an account that has not failed there', () => {
    const { now, choose, fail } = world();
    for (const account of ['one', 'two', 'three', 'four', 'five']) fail(account, 2);
    now.advance(COOLDOWN - 1);
    // The accounts that failed go on failing: that neither takes the probe nor makes it rest any longer.
    fail('one', 20);
    now.advance(1);
    expect(choose('one')).toEqual([]);
    expect(choose('two')).toEqual(['A']);
    fail('two');
    expect(choose('good')).toEqual(['A']);
    expect(choose('other', [a, b])).toEqual(['B', 'A']);
  });

  test('makes it rest again where it fails, until the next cool-down', () => {
    const { now, choose, fail } = world();
    for (const account of ['one', 'two', 'three', 'four', 'five']) fail(account, 2);
    now.advance(COOLDOWN);
    expect(choose('good')).toEqual(['A']);
    fail('good');
    expect(choose('other', [a, b])).toEqual(['B', 'A']);
    now.advance(COOLDOWN);
    expect(choose('other')).toEqual(['A']);
  });
});

test('an account whose own cool-down is over waits while the offer rests for all', () => {
  const { now, health, choose, fail } = world();
  fail('bad');
  now.advance(COOLDOWN - 10_000);
  for (const account of ['one', 'two', 'three', 'four', 'five']) fail(account, 2);
  now.advance(10_000);
  expect(choose('bad', [a, b])).toEqual(['B', 'A']);
  expect(health.retryAfterS([a], 'bad')).toBe(20);
  now.advance(COOLDOWN - 10_000);
  expect(choose('bad', [a, b])).toEqual(['A', 'B']);
});

test('a call that was refused before it was sent gives the probe back, also of an account that failed there long ago', () => {
  const { now, health, choose, fail, succeed } = world();
  fail('old');
  now.advance(10);
  succeed();
  for (const account of ['one', 'two', 'three', 'four', 'five']) fail(account, 2);
  now.advance(COOLDOWN);
  expect(choose('old')).toEqual(['A']);
  expect(choose('good', [a, b])).toEqual(['B', 'A']);
  health.notProbed(a, 'old');
  expect(choose('good')).toEqual(['A']);
});

test('what the gateway itself sees fail rests for all', () => {
  const { choose, fail } = world();
  fail(OWN_ACCOUNT, 1, false);
  expect(choose('good', [a, b])).toEqual(['B', 'A']);
});

test('the accounts that are remembered are few: the one that failed longest ago is forgotten', () => {
  const { choose, fail } = world();
  fail('first', 10, false);
  for (let account = 0; account < 31; account++) fail(`other-${account}`, 1, false);
  expect(choose('first')).toEqual([]);
  fail('last', 1, false);
  expect(choose('first')).toEqual(['A']);
});
