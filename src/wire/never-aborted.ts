/** For work that no client can end. Listeners on it stay for the life of the process. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;
