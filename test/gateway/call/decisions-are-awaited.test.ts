import { expect, test } from 'vitest';
import type { Call, CallRequest } from '#call';
import { prepareAsking } from '../../../src/gateway/call/ask-first.ts';

// So many requests may wait for a person at the same time. Those that were told the decision make room for others.

const AT_ONCE = 128;

/** A request that waits until it is refused: at the second look. */
async function refusedLater(id: string): Promise<unknown> {
  let looks = 0;
  const approval = { id, amount: 1n, expiresAt: 1, service: 'a/tool', operation: null, quote: 'qt' };
  const approvals = { find: async () => ({ ...approval, state: (looks += 1) > 1 ? 'refused' : 'waiting' }) };
  const deps = { approvals, pageOf: () => null, quotes: {}, health: {}, now: () => 0 };
  const caller = { account: 'a', key: { hash: 'key', askAbove: 0n }, content: { digest: id, waitMs: 60_000 } };
  const never = () => Promise.reject<Call>(new Error('it was not accepted'));
  const asking = { ...deps, approvals } as unknown as Parameters<typeof prepareAsking>[0];
  return prepareAsking(asking, never, { caller } as unknown as CallRequest, id).catch(
    (error: { code: string }) => error.code,
  );
}

test('requests that waited for a decision leave their places to others', async () => {
  for (const round of ['first', 'second']) {
    const ends = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => refusedLater(`${round}-${n}`)));
    expect(new Set(ends)).toEqual(new Set(['approval_refused']));
  }
});
