import { expect, it } from 'vitest';
import type { Caller } from '#accounts';
import type { LimitsOf } from '../../../src/server/accounts/budgets.ts';
import { createLimitedAccounts } from '../../../src/server/accounts/caller-limits.ts';

const rates = (requestsPerMinute: number): readonly LimitsOf[] => [
  {
    subject: 'account',
    limits: {
      budgets: [],
      requestsPerMinute,
      tokensPerMinute: null,
      allowedServices: null,
      askAbove: null,
      tags: null,
      tagBudgets: [],
    },
  },
];
const caller: Caller = { account: 'tollgate:local:org', key: null, wallet: null };

/** Limits of accounts whose lookups are answered when the test says so. */
function world() {
  let at = 0;
  const asked: ((rows: readonly LimitsOf[]) => void)[] = [];
  let changed: (account: string) => void = () => {};
  const accounts = createLimitedAccounts(
    {
      limitsOf: () => new Promise((resolve) => void asked.push(resolve)),
      onChange: (listener) => {
        changed = listener;
        return () => true;
      },
    },
    () => at,
  );
  return { accounts, asked, changed: () => changed(caller.account), wait: (ms: number) => (at += ms) };
}

it('one lookup answers all callers of an account for a second', async () => {
  const { accounts, asked, wait } = world();
  const both = [1, 2].map(async () => accounts.limited(caller));
  expect(asked).toHaveLength(1);
  asked[0]!(rates(5));
  for (const one of await Promise.all(both)) expect(one.rates?.account?.requestsPerMinute).toBe(5);
  wait(999);
  expect(accounts.limited(caller)).toMatchObject({ rates: { account: { requestsPerMinute: 5 } } });
  wait(1);
  expect(accounts.limited(caller)).toBeInstanceOf(Promise);
  expect(asked).toHaveLength(2);
});

it('a lookup that began before a change is not what counts after it', async () => {
  const { accounts, asked, changed } = world();
  const before = accounts.limited(caller);
  changed();
  const after = accounts.limited(caller);
  asked[1]!(rates(7));
  expect((await after).rates?.account?.requestsPerMinute).toBe(7);
  asked[0]!(rates(5));
  await before;
  expect(accounts.limited(caller)).toMatchObject({ rates: { account: { requestsPerMinute: 7 } } });
});

it('holds for calls of a run that was begun without a key', async () => {
  const { accounts, asked } = world();
  const limited = accounts.limited({ ...caller, run: { parent: 'x' } });
  asked[0]!(rates(5));
  expect((await limited).rates?.account?.requestsPerMinute).toBe(5);
});
