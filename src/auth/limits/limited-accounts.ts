import { dropOldest } from '#wire';
import type { Caller } from '#gateway';
import { ownerOfLimits } from './account-limits.ts';
import { callerLimits, type CallerLimits } from './caller-limits.ts';
import type { LimitsStore } from './limits-store.ts';

/** The longest that limits which another gateway has changed may still be the old ones here. */
const CACHE_TTL_MS = 1_000;
const CACHED_MAX = 20_000;

/**
 * Adds the limits of the account to callers without an API key, whose lookup has them already. A promise where they
 * have to be looked up: at most once a second for each account.
 */
interface LimitedAccounts {
  limited(caller: Caller): Caller | Promise<Caller>;
  close(): void;
}

interface Look {
  readonly from: number;
  /** Exclusively; Infinity while it is under way. */
  until: number;
  /** null while it is under way. */
  found: CallerLimits['parts'] | null;
  readonly result: Promise<CallerLimits['parts']>;
}

export function createLimitedAccounts(
  limits: Pick<LimitsStore, 'of' | 'onChange'>,
  now: () => number,
): LimitedAccounts {
  const looks = new Map<string, Look>();
  // A look that is under way may have read what was there before the change: it is not gone by any more.
  const stop = limits.onChange((account) => looks.delete(account));

  const begin = (account: string, from: number): Look => {
    const read = async () => {
      const rows = (await limits.of(account, from)).filter(({ subject }) => ownerOfLimits(subject) !== 'member');
      return callerLimits(account, null, rows, from);
    };
    const reading = read();
    const look: Look = { from, until: Infinity, found: null, result: reading.then(({ parts }) => parts) };
    looks.delete(account);
    dropOldest(looks, CACHED_MAX - 1);
    looks.set(account, look);
    reading.then(
      ({ parts, until }) => {
        look.found = parts;
        look.until = Math.min(until, from + CACHE_TTL_MS);
      },
      () => {
        if (looks.get(account) === look) looks.delete(account);
      },
    );
    return look;
  };

  const withLimits = (caller: Caller, parts: CallerLimits['parts']): Caller =>
    parts.budgets === undefined && parts.rates === undefined ? caller : { ...caller, ...parts };

  return {
    limited(caller) {
      if (caller.key !== null || caller.anonymous) return caller;
      const { account } = caller;
      const at = now();
      const known = looks.get(account);
      // An answer counts from the start of its look, as a change is to hold within that time.
      const isGood = known !== undefined && at >= known.from && at < Math.min(known.until, known.from + CACHE_TTL_MS);
      const look = isGood ? known : begin(account, at);
      if (look.found !== null) return withLimits(caller, look.found);
      return look.result.then((parts) => withLimits(caller, parts));
    },
    close() {
      stop();
      looks.clear();
    },
  };
}
