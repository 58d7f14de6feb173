import { expect, it } from 'vitest';
import { Shares } from '#wire';

/** Takes all that one party gets. */
function takeAll(shares: Shares, party: string): number {
  let taken = 0;
  for (; shares.mayTake(party); taken++) shares.take(party);
  return taken;
}

it('gives a party as much as it leaves free, so that no number of greedy ones leaves nothing', () => {
  const shares = new Shares(64);
  expect(Array.from({ length: 8 }, (_, n) => takeAll(shares, `${n}`))).toEqual([32, 16, 8, 4, 2, 1, 1, 0]);
  shares.leave('0', 32);
  expect(takeAll(shares, 'late')).toBe(16);
  expect(shares.all).toBe(48);
});

it('gives nobody more than the most of one', () => {
  const shares = new Shares(64, 8);
  expect(Array.from({ length: 9 }, (_, n) => takeAll(shares, `${n}`))).toEqual([8, 8, 8, 8, 8, 8, 8, 4, 2]);
});

it('counts amounts', () => {
  const shares = new Shares(1_000);
  shares.take('one', 500);
  expect([shares.mayTake('one', 1), shares.mayTake('two', 501), shares.mayTake('two', 500)]).toEqual([
    false,
    false,
    true,
  ]);
  shares.take('two', 300);
  expect([shares.mayTake('two', 1), shares.amountOf('one'), shares.all]).toEqual([false, 500, 800]);
});
