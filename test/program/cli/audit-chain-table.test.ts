import { expect, test } from 'vitest';
import type { AuditedChain, ChainAudit } from '#payments/on-chains';
import { chainAuditView, showChains } from '../../../src/program/cli/admin/audit.ts';

const plain = (_style: unknown, text: string): string => text;

const chain = (changes: Partial<AuditedChain> = {}): AuditedChain => ({
  network: 'eip155:8453',
  treasury: '0x00',
  ok: true,
  held: 12_500_000n,
  booked: 12_500_000n,
  difference: 0n,
  height: 10n,
  comparedAt: Date.parse('2026-03-04T05:06:07.089Z'),
  owed: 13_000_000n,
  open: { deposits: 1, unfinal: 2, withdrawals: 3 },
  halted: null,
  error: null,
  ...changes,
});
const show = (chains: readonly AuditedChain[], changes: Partial<ChainAudit> = {}) =>
  showChains(
    chainAuditView({
      ok: true,
      chains,
      suspense: 0n,
      fees: 1_000_000n,
      losses: 0n,
      transit: 0n,
      operator: 0n,
      ...changes,
    }),
    plain,
  );

test('a chain that is right', () => {
  expect(show([chain()])).toBe(
    [
      'chain        owed  held  booked  difference  unfinal  coming  going  compared',
      'eip155:8453    13  12.5    12.5           0        2       1      3  2026-03-04T05:06:07Z',
      '',
      '  suspense  0 USD came in and do not belong to an account yet',
      '  fees      1 USD',
      '',
      'The treasuries hold what the books say.',
    ].join('\n'),
  );
});

test('chains that differ, are stopped, or do not answer, each with its line', () => {
  const text = show(
    [
      chain({ ok: false, held: 13_000_000n, difference: 500_000n }),
      chain({ network: 'eip155:1', ok: false, halted: 'it holds 1 USDC' }),
      chain({
        network: 'eip155:2',
        ok: null,
        held: null,
        booked: null,
        difference: null,
        comparedAt: null,
        error: 'away',
      }),
    ],
    { ok: false, losses: 2_000_000n, operator: 3_000_000n },
  );
  expect(text).toContain('+0.5');
  expect(text).toContain('✗ eip155:8453: the treasury and the books differ');
  expect(text).toContain('✗ eip155:1: withdrawals are stopped: it holds 1 USDC');
  expect(text).toContain('! eip155:2: could not be compared: away');
  expect(text).toContain('never');
  expect(text).toContain('2 USD were taken back by a chain');
  expect(text).toContain('3 USD were credited by the operator');
  expect(text).toContain('The treasuries and the books differ.');
});

test('nothing that differs, and something that could not be compared, is said to be so', () => {
  expect(show([chain({ ok: null, error: 'away' })], { ok: null })).toContain('Not every treasury could be compared.');
  expect(show([])).toContain('Name its file with --config');
});
