import type { ConnectionEnding } from './connection.ts';
import type { Log } from './log.ts';

/**
 * Exit codes of the proxy's process: closed on request, registration refused, provider not allowed, replaced by a newer
 * connection.
 */
export const EXIT = { closed: 0, refused: 1, forbidden: 2, replaced: 3 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Milliseconds until the next dial, or the exit code. */
export type Next = { readonly wait: number } | { readonly exit: ExitCode };

interface RedialOptions {
  readonly router: string;
  /**
   * Whether the credential is an API key. A wrong key stays wrong, but a wallet's sign-in that failed because of the
   * clock may succeed later.
   */
  readonly byKey: boolean;
  /** The wait after a refused credential, and the longest `Retry-After` that is honoured. */
  readonly unauthorizedMs: number;
  readonly random: () => number;
  readonly log: Log;
}

/** Decides what to do when a connection has ended, and logs it. */
interface Redial {
  /** The router accepted the credential. */
  accepted(): void;
  /** `readyMs`: how long the services were registered on the connection. null if they never were. */
  after(ending: ConnectionEnding, readyMs: number | null): Next;
}

type LogFacts = Readonly<Record<string, unknown>>;

/** After a connection that was ready this long, the backoff starts again from the beginning. */
const STEADY_MS = 10_000;
/** A sign-in is invalid if the clocks differ by more than this. */
const SKEW_MS = 20_000;
/**
 * An API key counts as wrong after this many refused dials, if it was never accepted. The second value is the time
 * between these dials.
 */
const KEY_TRIES = 3;
const KEY_AGAIN_MS = 1_000;

export function createRedial({ router, byKey, unauthorizedMs, random, log }: RedialOptions): Redial {
  const backoff = createBackoff(random);
  let accepted = false;
  let unauthorized = 0;

  const again = (facts: LogFacts, text: string, wait = backoff.next()): Next => {
    log.warn({ router, ...facts, again_in_ms: wait }, text);
    return { wait };
  };
  const exit = (code: ExitCode, facts: LogFacts, text: string): Next => {
    log.error(facts, text);
    return { exit: code };
  };

  /**
   * An API key that was never accepted is wrong after a few tries. Any other credential may be refused only for a
   * while.
   */
  function afterUnauthorized(facts: LogFacts, skewMs: number | null): Next {
    unauthorized += 1;
    const isNewKey = byKey && !accepted;
    if (isNewKey && unauthorized >= KEY_TRIES)
      return exit(
        EXIT.forbidden,
        { router, ...facts },
        'the router does not accept this API key; correct router.api_key and start again',
      );
    const clock = skewMs !== null && Math.abs(skewMs) > SKEW_MS ? { hint: clockHint(skewMs) } : {};
    const wait = isNewKey ? Math.min(KEY_AGAIN_MS, unauthorizedMs) : unauthorizedMs;
    return again({ ...facts, ...clock }, 'the router does not accept the credential', wait);
  }

  function afterRejection({
    status,
    message,
    retryAfterMs,
    skewMs,
  }: Extract<ConnectionEnding, { kind: 'rejected' }>): Next {
    const facts = { status, message };
    if (status === 403) return exit(EXIT.forbidden, { router, ...facts }, 'this provider may not connect here');
    if (status === 401) return afterUnauthorized(facts, skewMs);
    unauthorized = 0;
    if (status === 426) return again(facts, "a proxy between this machine and the router doesn't forward WebSockets");
    if (status === 404 || (status >= 300 && status < 400))
      return again({ ...facts, hint: 'is router.url right?' }, 'there is no router for providers at this address');
    // The random backoff is added to the router's `Retry-After`. Otherwise all proxies that got the same value would
    // return at once.
    const wait = Math.min(retryAfterMs ?? 0, unauthorizedMs) + backoff.next();
    return again(facts, 'the router does not accept a connection now', wait);
  }

  return {
    accepted() {
      accepted = true;
    },
    after(ending, readyMs) {
      if (readyMs !== null && readyMs >= STEADY_MS) backoff.reset();
      switch (ending.kind) {
        case 'lost':
          return again({ why: ending.why }, 'no connection to the router');
        case 'draining':
          if (ending.banned !== null)
            return exit(
              EXIT.forbidden,
              { router, reason: ending.banned },
              'the operator of this router has banned this provider; running calls may finish',
            );
          return again({}, 'the router is shutting down; running calls continue, and the proxy reconnects');
        case 'replaced':
          return exit(EXIT.replaced, { router }, 'another proxy with the same credential took over; this proxy stops');
        case 'refused':
          for (const { key, wrong, right } of ending.problems) log.error({ key, wrong, right }, 'the router refused');
          return exit(
            EXIT.refused,
            { why: ending.message },
            'the router refused the services; correct the file and start again',
          );
        case 'rejected':
          return afterRejection(ending);
      }
    },
  };
}

function clockHint(skewMs: number): string {
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return `the clock of this machine is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the router's`;
}

interface Backoff {
  /** Milliseconds to wait before the next try: random, between 0 and a maximum that doubles with each try. */
  next(): number;
  reset(): void;
}

/** Full jitter: proxies that lost the same router return spread over the whole time, not in waves. */
export function createBackoff(
  random: () => number,
  { baseMs = 250, maxMs = 15_000 }: { readonly baseMs?: number; readonly maxMs?: number } = {},
): Backoff {
  let tries = 0;
  return {
    next: () => Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(tries++, 30))),
    reset() {
      tries = 0;
    },
  };
}
