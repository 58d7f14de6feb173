import { expect, test } from 'vitest';
import { treasuryOf } from '#billing';
import type { Chains } from '#chains';
import { auditFunds } from '#payments/on-chains';
import type { ChainBook } from '../../../../src/billing/chains/chain-rows.ts';

// What an audit says of a chain that could not be compared now.

const BASE = 'eip155:8453';
const book = (halted: string | null): ChainBook => ({
  network: BASE,
  asset: '0x01',
  treasury: '0x02',
  opening: 0n,
  cursor: '1/0x',
  height: 1n,
  held: 1n,
  booked: 2n,
  comparedAt: 5,
  halted,
  previous: null,
  previousEmpty: false,
  openingId: null,
});
const ledger = { balance: async () => null };
const audited = ({ books, ...chains }: Pick<Chains, 'audit' | 'books' | 'open'>) =>
  auditFunds({ chains }, ledger, books);

test('one that is halted is wrong, whether or not it answers', async () => {
  const report = await audited({
    audit: async () => [{ network: BASE, reserves: null, error: new Error('away') }],
    books: async () => [book('the treasury holds less')],
    open: async () => [{ network: BASE, kind: 'withdrawals', count: 3, oldest: 1 }],
  });
  expect(report).toMatchObject({
    ok: false,
    chains: [
      {
        ok: false,
        halted: 'the treasury holds less',
        error: 'away',
        held: null,
        comparedAt: 5,
        open: { deposits: 0, unfinal: 0, withdrawals: 3 },
      },
    ],
  });
});

test('one that does not answer, or does not tell, is neither right nor wrong', async () => {
  const of = (error: unknown) =>
    audited({
      audit: async () => [{ network: BASE, reserves: null, error }],
      books: async () => [book(null)],
      open: async () => [],
    });
  expect(await of(new Error('away'))).toMatchObject({ ok: null, chains: [{ ok: null, error: 'away' }] });
  expect(await of(null)).toMatchObject({
    ok: null,
    chains: [{ ok: null, error: expect.stringContaining('did not return') }],
  });
});

test('one that is not in the configuration is told of, as long as its treasury holds money by the books', async () => {
  const holding = (micro: bigint) => ({
    balance: async (account: string) => (account === treasuryOf(BASE) ? { available: -micro, locked: 0n } : null),
  });
  const books = async () => [book(null)];
  const open = async () => [];
  const error = expect.stringContaining('the configuration does not have this chain');
  const missing = { ok: null, chains: [{ network: BASE, treasury: '0x02', ok: null, owed: 7n, error }] };
  expect(await auditFunds(null, holding(7n), books)).toMatchObject(missing);
  const other = { network: 'eip155:1', reserves: null, error: null };
  expect(await auditFunds({ chains: { audit: async () => [other], open } }, holding(7n), books)).toMatchObject({
    chains: [{ network: 'eip155:1' }, ...missing.chains],
  });
  expect(await auditFunds(null, holding(0n), books)).toMatchObject({ ok: true, chains: [] });
});

test('without chains there is nothing wrong', async () => {
  expect(await auditFunds(null, ledger, async () => [])).toEqual({
    ok: true,
    chains: [],
    suspense: 0n,
    fees: 0n,
    losses: 0n,
    transit: 0n,
    operator: 0n,
  });
});
