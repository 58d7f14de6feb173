import { expect, test } from 'vitest';
import { NetworkBudgets } from '#wire/budgets';
import { ClientNetworks, type DialsSpent } from '../../../src/gateway/network/tunnel/client-networks.ts';

const SIZE = { atOnce: 100, perSecond: 10 };

test('each network has its budget, which fills steadily up to its size', () => {
  let now = 0;
  const budgets = new NetworkBudgets(SIZE, () => now);
  budgets.budgetOf('a').take(120);
  expect(['a', 'b'].map((network) => budgets.isSpent(network))).toEqual([true, false]);
  now = 1_900;
  expect(budgets.isSpent('a')).toBe(true);
  now = 2_000;
  expect(budgets.isSpent('a')).toBe(false);
  expect([0, 5].map((count) => budgets.budgetOf('a').waitMs(count))).toEqual([0, 500]);
  now = 60_000;
  expect(budgets.budgetOf('a').remaining()).toBe(100);
});

test('of many networks, the one that was asked for least recently is forgotten', () => {
  const budgets = new NetworkBudgets(SIZE, () => 0);
  for (const network of ['first', 'second']) budgets.budgetOf(network).take(101);
  for (let other = 0; other < 9_998; other++) budgets.budgetOf(`${other}`);
  budgets.budgetOf('first');
  budgets.budgetOf('one more');
  expect(['first', 'second'].map((network) => budgets.isSpent(network))).toEqual([true, false]);
});

test('a proxy that dials again has what its network had left of its frames', () => {
  const networks = new ClientNetworks(1);
  const first = networks.enter('a', 'p');
  first.frames.take(1_000_000_000);
  first.leave();
  networks.check('a');
  expect(networks.enter('a', 'p').frames.remaining()).toBeLessThan(0);
  expect(networks.enter('b', 'p').frames.remaining()).toBe(10_000);
});

test('a network may dial 250 times at once, and then 10 times in a second', () => {
  let now = 0;
  const networks = new ClientNetworks(1, () => now);
  const dial = (network: string) => {
    try {
      networks.takeDial(network);
      return 'taken';
    } catch (error) {
      const { code, retryAfterS, isRepeated } = error as DialsSpent;
      return { code, retryAfterS, isRepeated };
    }
  };
  const first = Array.from({ length: 250 }, () => dial('a'));
  expect(new Set(first)).toEqual(new Set(['taken']));
  const refused = { code: 'rate_limit_exceeded', retryAfterS: 1 };
  expect(dial('a')).toEqual({ ...refused, isRepeated: false });
  expect(dial('a')).toEqual({ ...refused, isRepeated: true });
  expect(dial('b')).toBe('taken');
  now = 100;
  expect([dial('a'), dial('a')]).toEqual(['taken', { ...refused, isRepeated: false }]);
});

/** A document with so many models. */
const documentOf = (models: number) =>
  JSON.stringify({
    version: 1,
    models: Array.from({ length: models }, (_, one) => ({
      name: `acme/model-${one}`,
      context_length: 1_000,
      pricing: { prompt: '1', completion: '1' },
      params: { model: 'm' },
    })),
  });

test('registrations of a provider wait beyond their budget, whatever its connection and network', () => {
  let now = 0;
  const networks = new ClientNetworks(1_000, () => now);
  const take = (document: string, network = 'a') => {
    const place = networks.enter(network, 'acme');
    const waitMs = place.takeRegistration(document);
    place.leave();
    return waitMs;
  };
  const large = documentOf(1_000);
  const taken = Array.from({ length: 10 }, () => take(large));
  expect(taken).toEqual(Array.from({ length: 10 }, () => 0));
  const waits = Array.from({ length: 12 }, (_, one) => take(large, `network ${one}`));
  expect(waits.filter((waitMs) => waitMs !== null && waitMs > 0).length).toBeGreaterThan(2);
  expect(waits.at(-1)).toBeNull();
  // What was refused took nothing: a file that is loaded again a few times in a minute never waits.
  now = 70_000;
  expect(take(large)).toBe(0);
  for (; now < 200_000; now += 15_000) expect(take(large)).toBe(0);
});

test('fifty providers behind one address register at once, and more take their turns', () => {
  const networks = new ClientNetworks(1_000, () => 0);
  const waits = Array.from({ length: 500 }, (_, one) =>
    networks.enter('a', `provider ${one}`).takeRegistration(documentOf(20)),
  );
  expect(waits.slice(0, 50)).toEqual(Array.from({ length: 50 }, () => 0));
  const late = waits.findIndex((waitMs) => waitMs !== 0);
  expect(late).toBeGreaterThan(200);
  expect(waits.at(-1)).toBeNull();
  expect(networks.enter('b', 'another').takeRegistration(documentOf(20))).toBe(0);
});

test('a document whose text is all colons takes no more than the largest one', () => {
  const networks = new ClientNetworks(1_000, () => 0);
  expect(networks.enter('a', 'one').takeRegistration(':'.repeat(4 * 1024 * 1024))).toBe(0);
  expect(networks.enter('a', 'another').takeRegistration(documentOf(1_000))).toBe(0);
});

test('connections of one site leave places for others, however many networks it has', () => {
  const networks = new ClientNetworks(1_000, undefined, Infinity, 64);
  const site: string[] = [];
  for (let at = 0; at < 200; at++) {
    const network = `2001:db8:77:${(at * 256).toString(16)}`;
    try {
      networks.check(network);
    } catch (error) {
      expect(error).toMatchObject({
        code: 'rate_limit_exceeded',
        message: expect.stringMatching(/around it/) as string,
      });
      break;
    }
    networks.enter(network, `provider-${at}`);
    site.push(network);
  }
  expect(site).toHaveLength(56);
  networks.check('198.51.100.7');
});
