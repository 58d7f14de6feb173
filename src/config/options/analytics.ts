import { choice, whole } from '../option.ts';
import { HOUR_MS } from '../units.ts';

/** `[analytics]`: figures of calls by day. */
export const ANALYTICS = {
  public: choice({
    of: ['on', 'delayed', 'off'],
    default: 'on',
    meaning:
      'Figures of the market that everybody can see. `delayed` does not show today and yesterday; `off` answers 404.',
  }),
  users_min: whole({
    min: 0,
    max: 1_000_000,
    default: 0,
    meaning:
      'Public figures do not show a day on which fewer users were active, nor a day of a service that fewer users called: its volume is the bill of a few. 0 shows every day.',
  }),
  retention_days: whole({
    min: 31,
    max: 36_500,
    default: 400,
    meaning: "Days for which an account's own figures are kept. The calls themselves are kept for ever.",
  }),
  every_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 2_000,
    meaning:
      'Time between two turns in which calls are added to the figures. 0: this process adds none, and another one of the database has to.',
  }),
};
