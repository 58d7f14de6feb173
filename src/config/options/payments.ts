import { whole } from '../option.ts';
import { usd } from '../usd.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

const DAY_S = 86_400;

/** `[payments]`: payments over all chains. */
export const PAYMENTS = {
  wait_ms: whole({
    min: 0,
    max: MINUTE_MS,
    default: 8_000,
    meaning:
      'How long a request waits for the payment that came with it. A payment that takes longer is answered with 202 and credited when it arrives.',
  }),
  address_cooldown_s: whole({
    min: 0,
    max: 30 * DAY_S,
    default: DAY_S,
    meaning: 'How long a wallet has to be bound to an account before its money is paid to it.',
  }),
  watch_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 5_000,
    meaning: 'Time between two looks at what came into the treasuries.',
  }),
  compare_late_ms: whole({
    min: 10_000,
    max: 7 * 24 * HOUR_MS,
    default: HOUR_MS / 2,
    meaning: 'Time without a comparison after which the log has an error and `/health/ready` names the chain.',
  }),
  strangers_max: usd({
    min: 0n,
    max: 1_000_000_000_000n,
    default: 1_000_000_000n,
    meaning:
      'The most that wallets without an account of their own are credited in all, over all chains together, while a chain may still undo it. Payments above it wait until they are final.',
  }),
  compare_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning: 'Time between two comparisons of the books with what the treasuries hold.',
  }),
};
