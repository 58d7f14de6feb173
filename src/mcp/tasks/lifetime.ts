/**
 * How much longer than its server's `ttlMs` the gateway keeps a task, so that it still sees an end shortly before. In
 * milliseconds.
 */
const GRACE_MS = 60_000;
/** The longest pause between two looks, even if a server asks for a longer one. In milliseconds. */
const PAUSE_MS_MAX = 60_000;

/**
 * How long a task may run from its creation until the gateway gives it up: as long as its server keeps it, but at most
 * `ttlMsMax`. In milliseconds.
 */
export const lifetimeOf = (serverTtlMs: number | null, ttlMsMax: number): number =>
  serverTtlMs === null ? ttlMsMax : Math.min(serverTtlMs + GRACE_MS, ttlMsMax);

/**
 * The `ttlMs` of a running task for the client. It is at most `ttlMsMax`, because then the gateway gives the task up.
 */
export const shownTtlMs = (serverTtlMs: number | null, ttlMsMax: number): number =>
  Math.min(serverTtlMs ?? ttlMsMax, ttlMsMax);

/** The pause before the next poll, in milliseconds. */
export const pauseOf = (pollMs: number | null): number => Math.min(pollMs ?? 0, PAUSE_MS_MAX);
