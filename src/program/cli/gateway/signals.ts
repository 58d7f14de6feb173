import { closeSync, openSync } from 'node:fs';

/** A terminal, npm and the launcher each pass a Ctrl-C on. Signals within this time count as one. */
const SAME_SIGNAL_MS = 500;
const PARENT_CHECK_MS = 500;

interface EndSignals {
  /** Resolves at the first SIGINT or SIGTERM, or when the launcher or npm that started this process has ended. */
  readonly requested: Promise<void>;
  /** Whether somebody waits for the end: a Ctrl-C, or an end without a signal. A planned restart sends SIGTERM. */
  hurried(): boolean;
  /** Waits before the stop. Resolves after `ms` milliseconds, or at the next signal, which then ends nothing else. */
  delay(ms: number): Promise<void>;
  forget(): void;
}

/** Waits for the end. A second signal ends this process at once, except during the delay. */
export function catchSignals(): EndSignals {
  let last: number | null = null;
  let hurried = false;
  let endDelay: (() => void) | null = null;
  const { promise, resolve } = Promise.withResolvers<void>();
  const hurry = () => {
    hurried = true;
    endDelay?.();
    resolve();
  };
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    const same = last !== null && now - last <= SAME_SIGNAL_MS;
    if (last === null || same) {
      last ??= now;
      if (signal === 'SIGINT') hurry();
      resolve();
    } else if (endDelay !== null) {
      last = now;
      hurry();
    } else process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  // The parent process has ended, so nobody can stop this process through it. The parent is the launcher, or the shell
  // of `npm start`, which ends at a SIGTERM without passing it on.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env['npm_lifecycle_event'] && process.ppid !== parent) hurry();
  }, PARENT_CHECK_MS);
  watch.unref();
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  process.on('disconnect', hurry);
  process.channel?.unref();
  return {
    requested: promise,
    hurried: () => hurried,
    async delay(ms) {
      if (hurried) return;
      const { promise: over, resolve: end } = Promise.withResolvers<void>();
      endDelay = end;
      const timer = setTimeout(end, ms);
      await over;
      clearTimeout(timer);
      endDelay = null;
    },
    forget() {
      endDelay?.();
      clearInterval(watch);
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
      process.off('disconnect', hurry);
    },
  };
}

/** Runs `reload` at each SIGHUP, so SIGHUP does not end this process. `reload` must log its errors. */
export function catchReload(reload: () => Promise<unknown>): { forget(): void } {
  const onHangUp = () => void reload().catch(() => {});
  process.on('SIGHUP', onHangUp);
  return { forget: () => void process.off('SIGHUP', onHangUp) };
}

/** Whether this process was started in a terminal that was closed since. A terminal sends SIGHUP when it closes. */
export function isTerminalGone(): boolean {
  if (!process.stdin.isTTY && !process.stdout.isTTY) return false;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}
