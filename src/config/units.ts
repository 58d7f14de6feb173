/** Units for the limits and defaults of options. */
export const KIB = 1024;
export const MIB = 1024 * KIB;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
