import { whole } from '../option.ts';
import { HOUR_MS, MINUTE_MS } from '../units.ts';

/** `[quotes]`: binding costs that are given before a call. */
export const QUOTES = {
  valid_ms: whole({
    min: MINUTE_MS,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning: 'How long a quote binds. Until then a call that names it costs what it says, whatever the price is.',
  }),
};
