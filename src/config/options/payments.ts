import { whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

const DAY_S = 86_400;

/** `[payments]`: money over all chains. */
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
  compare_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning: 'Time between two comparisons of the books with what the treasuries hold.',
  }),
};
