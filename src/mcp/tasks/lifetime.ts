/**
 * A task lives this much longer than its server's `ttlMs`, so that an end just before is still seen. Milliseconds.
 */
const GRACE_MS = 60_000;
/** The longest pause between two looks, even where a server asks for a longer one. Milliseconds. */
const PAUSE_MS_MAX = 60_000;

/**
 * How long a task may go on, from its creation, before it is given up: as long as its server keeps it, at most
 * `ttlMsMax`. Milliseconds.
 */
export const lifetimeOf = (serverTtlMs: number | null, ttlMsMax: number): number =>
  serverTtlMs === null ? ttlMsMax : Math.min(serverTtlMs + GRACE_MS, ttlMsMax);

/** The `ttlMs` of a running task for its client: after `ttlMsMax` the gateway gives the task up. */
export const shownTtlMs = (serverTtlMs: number | null, ttlMsMax: number): number =>
  Math.min(serverTtlMs ?? ttlMsMax, ttlMsMax);

/** The pause before the next look. Milliseconds. */
export const pauseOf = (pollMs: number | null): number => Math.min(pollMs ?? 0, PAUSE_MS_MAX);
