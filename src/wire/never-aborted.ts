const ignored = () => {};

/**
 * A signal that never aborts, so it drops its listeners. An AbortSignal that lives long must not get a listener from
 * each call: a removed listener still points to the one that was added after it, which keeps all later calls alive
 * until the next full garbage collection (decision 91).
 */
export const NEVER_ABORTED: AbortSignal = Object.assign(new AbortController().signal, {
  addEventListener: ignored,
  removeEventListener: ignored,
});
