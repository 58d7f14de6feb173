import type { Case } from './option-case.ts';

/** The options of `[payments]`. */
export const PAYMENT_CASES = {
  'payments.payouts': {
    toml: '"by bank transfer each month"',
    wrong: '"two\\nlines"',
    of: (c) => c.payments.payouts,
    is: 'by bank transfer each month',
    fallback: null,
  },
  'payments.wait_ms': { toml: '0', wrong: '60_001', of: (c) => c.payments.waitMs, is: 0, fallback: 8_000 },
  'payments.address_cooldown_s': {
    toml: '60',
    wrong: '-1',
    of: (c) => c.payments.addressCooldownS,
    is: 60,
    fallback: 86_400,
  },
  'payments.watch_ms': { toml: '100', wrong: '99', of: (c) => c.payments.watchMs, is: 100, fallback: 5_000 },
  'payments.compare_late_ms': {
    toml: '10_000',
    wrong: '9_999',
    of: (c) => c.payments.compareLateMs,
    is: 10_000,
    fallback: 1_800_000,
  },
  'payments.strangers_max': {
    toml: '5',
    wrong: '-1',
    of: (c) => c.payments.strangersMax,
    is: 5_000_000n,
    fallback: 1_000_000_000n,
  },
  'payments.compare_ms': {
    toml: '1_000',
    wrong: '"often"',
    of: (c) => c.payments.compareMs,
    is: 1_000,
    fallback: 300_000,
  },
} as const satisfies Record<string, Case>;
