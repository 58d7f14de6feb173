/** A terminal, npm and the launcher each pass a Ctrl-C on. Signals within this time count as one. */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_MS = 500;

/**
 * Waits for the end. `requested` resolves at the first SIGINT or SIGTERM, or when the launcher or npm that started this
 * process has ended. A second signal ends this process at once.
 */
export function catchSignals(): { readonly requested: Promise<void>; forget(): void } {
  let first: number | null = null;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (first === null) {
      first = now;
      resolve();
    } else if (now - first > SAME_SIGNAL_MS) process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  // The parent process has ended, so nobody can stop this process through it. The parent is the launcher, or the shell
  // of `npm start`, which ends at a SIGTERM without passing it on.
  const onOrphaned = () => resolve();
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env['npm_lifecycle_event'] && process.ppid !== parent) resolve();
  }, PARENT_CHECK_MS);
  watch.unref();
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  process.on('disconnect', onOrphaned);
  process.channel?.unref();
  return {
    requested: promise,
    forget() {
      clearInterval(watch);
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
      process.off('disconnect', onOrphaned);
    },
  };
}

/** Runs `reload` at each SIGHUP, so SIGHUP does not end this process. `reload` must log its errors. */
export function catchReload(reload: () => Promise<unknown>): { forget(): void } {
  const onHangUp = () => void reload().catch(() => {});
  process.on('SIGHUP', onHangUp);
  return { forget: () => void process.off('SIGHUP', onHangUp) };
}
