import { expect, test } from 'vitest';
import { NetworkBudgets } from '#wire/budgets';
import { ClientNetworks } from '../../../src/network/tunnel/admission.ts';

const SIZE = { atOnce: 100, perSecond: 10 };

test('each network has its budget, which fills steadily up to its size', () => {
  let now = 0;
  const budgets = new NetworkBudgets(SIZE, () => now);
  budgets.of('a').take(120);
  expect(['a', 'b'].map((network) => budgets.isSpent(network))).toEqual([true, false]);
  now = 1_900;
  expect(budgets.isSpent('a')).toBe(true);
  now = 2_000;
  expect(budgets.isSpent('a')).toBe(false);
  now = 60_000;
  expect(budgets.of('a').left()).toBe(100);
});

test('of many networks, the one that was asked for least recently is forgotten', () => {
  const budgets = new NetworkBudgets(SIZE, () => 0);
  for (const network of ['first', 'second']) budgets.of(network).take(101);
  for (let other = 0; other < 9_998; other++) budgets.of(`${other}`);
  budgets.of('first');
  budgets.of('one more');
  expect(['first', 'second'].map((network) => budgets.isSpent(network))).toEqual([true, false]);
});

test('a proxy that dials again has what its network had left of its frames', () => {
  const networks = new ClientNetworks(1);
  const first = networks.enter('a');
  first.frames.take(1_000_000_000);
  first.leave();
  networks.check('a');
  expect(networks.enter('a').frames.left()).toBeLessThan(0);
  expect(networks.enter('b').frames.left()).toBe(10_000);
});
