import * as fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import type { UpstreamFailure } from '#wire';
import {
  createConnectionShares,
  type ConnectionSlot,
} from '../../../../src/gateway/network/upstream/connection-shares.ts';

afterEach(() => void vi.useRealTimers());

function world(max: number, waitMs = 1_000) {
  const shares = createConnectionShares({ max, waitMs });
  const begun: string[] = [];
  const refused: UpstreamFailure[] = [];
  const enter = (account: string): ConnectionSlot =>
    shares.enter(
      account,
      () => void begun.push(account),
      (failure) => void refused.push(failure),
    );
  return {
    shares,
    begun,
    refused,
    enter,
    many: (account: string, count: number) => Array.from({ length: count }, () => enter(account)),
  };
}

test('an account alone gets half of the connections, one that comes then half of what is left', () => {
  const { begun, many } = world(100);
  many('greedy', 1_000);
  expect(begun.length).toBe(50);
  many('other', 1_000);
  expect(begun.filter((account) => account === 'other').length).toBe(25);
  many('third', 1);
  expect(begun.at(-1)).toBe('third');
});

test('the only connection is for whoever comes first, then for whoever waits', () => {
  const { begun, enter } = world(1);
  const first = enter('a');
  enter('b');
  expect(begun).toEqual(['a']);
  first.leave();
  first.leave();
  expect(begun).toEqual(['a', 'b']);
});

test('those who wait are served in turn, account by account', () => {
  const { begun, enter, many } = world(2);
  const held = [enter('x'), enter('y')];
  expect(begun).toEqual(['x', 'y']);
  many('a', 3);
  many('b', 3);
  for (const entry of held) entry.leave();
  expect(begun.slice(2)).toEqual(['a', 'b']);
});

test('a request that waits too long is refused, with words that say why, and is nobody’s failure', () => {
  vi.useFakeTimers();
  const { begun, refused, enter } = world(2, 1_000);
  enter('a');
  enter('a');
  vi.advanceTimersByTime(999);
  expect(refused).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(refused).toMatchObject([
    {
      attributedTo: 'account',
      unsent: true,
      retryable: true,
      message: expect.stringMatching(/^This account has 1 requests open/) as string,
    },
  ]);
  expect(begun).toEqual(['a']);
});

test('as many wait as there are connections, and no more', () => {
  const { refused, many } = world(10);
  many('a', 5 + 10 + 3);
  expect(refused.length).toBe(3);
});

test('nothing waits where there is no time for that', () => {
  const { refused, many } = world(10, 0);
  many('a', 6);
  expect(refused.length).toBe(1);
});

test('whoever leaves while it waits is not served', () => {
  const { begun, enter } = world(1);
  const first = enter('a');
  enter('b').leave();
  first.leave();
  expect(begun).toEqual(['a']);
});

test('whoever waits is refused when all is closed, and nothing is left', () => {
  const { shares, refused, enter } = world(1);
  const first = enter('a');
  enter('b');
  shares.close();
  expect(refused.length).toBe(1);
  first.leave();
  expect(shares.idle).toBe(true);
});

test('whatever comes and goes: never more than there are, none held back that may go, nothing left', () => {
  const steps = fc.array(fc.record({ account: fc.constantFrom('a', 'b', 'c', 'd'), leaves: fc.nat() }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), steps, (max, all) => {
      const shares = createConnectionShares({ max, waitMs: 1e6 });
      const open: { readonly account: string; readonly entry: ConnectionSlot; state: string }[] = [];
      const held = (account?: string) =>
        open.filter((each) => each.state === 'held' && (account === undefined || each.account === account)).length;
      const remove = (index: number) => {
        const [gone] = open.splice(index, 1);
        gone!.entry.leave();
      };
      for (const { account, leaves } of all) {
        if (leaves % 3 === 0 && open.length > 0) remove(leaves % open.length);
        const made = { account, state: 'waits', entry: null as unknown as ConnectionSlot };
        open.push(made);
        made.entry = shares.enter(
          account,
          () => void (made.state = 'held'),
          () => void (made.state = 'refused'),
        );
        expect(held()).toBeLessThanOrEqual(max);
        for (const each of open)
          if (each.state === 'waits') expect(held(each.account)).toBeGreaterThanOrEqual(max - held());
      }
      while (open.length > 0) remove(0);
      expect(shares.idle).toBe(true);
    }),
  );
});

test('large requests take their size of the whole, and a small one begins beside them', () => {
  const shares = createConnectionShares({ max: 48, unit: 'bytes', waitMs: 600_000 });
  const begun: string[] = [];
  const enter = (account: string, size: number) =>
    shares.enter(
      account,
      () => void begun.push(`${account} ${size}`),
      () => expect.unreachable(),
      size,
    );
  const large = [enter('a', 12), enter('a', 12), enter('a', 12)];
  // Half of the whole is its share, so the third waits, and another account has room.
  expect(begun).toEqual(['a 12', 'a 12']);
  enter('b', 12);
  expect(begun.at(-1)).toBe('b 12');
  // Of the last quarter, an account gets as much as it leaves free.
  const waiting = enter('b', 12);
  expect(begun).toHaveLength(3);
  const small = enter('c', 6);
  expect(begun.at(-1)).toBe('c 6');
  small.leave();
  expect(begun).toHaveLength(4);
  large[0]!.leave();
  expect(begun.slice(4)).toEqual(['a 12']);
  waiting.leave();
});
