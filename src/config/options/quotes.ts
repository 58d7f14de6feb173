import { whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

/** `[quotes]`: binding costs that are given before a call. */
export const QUOTES = {
  valid_ms: whole({
    min: MINUTE_MS,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning:
      'How long a quote is valid. A call that names a valid quote costs what the quote says, even if the price has changed.',
  }),
};
