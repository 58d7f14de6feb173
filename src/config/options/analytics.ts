import { choice, whole } from '../option.ts';
import { HOUR_MS } from '../units.ts';

/** `[analytics]`: figures of calls by day. */
export const ANALYTICS = {
  public: choice({
    of: ['on', 'delayed', 'off'],
    default: 'on',
    meaning:
      'Whether everybody can see the figures of the market. `delayed` leaves out today and yesterday. `off` answers 404.',
  }),
  users_min: whole({
    min: 0,
    max: 1_000_000,
    default: 0,
    meaning:
      'Smallest number of users for public figures. They leave out a day on which fewer users were active, and a day of a service that fewer users called, because its volume would show what these few paid. 0 shows every day.',
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
      'Time between two updates of the figures with new calls. With 0, this process does not update them: another process of the same database must do it.',
  }),
};
