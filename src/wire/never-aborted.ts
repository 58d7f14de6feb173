/** For work that no client can cancel. Listeners on it are never removed. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;
