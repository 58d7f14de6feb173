import { dropOldest } from '#wire';
import type { Caller } from '#gateway';
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

interface Known extends CallerLimits {
  readonly from: number;
}

export function createLimitedAccounts(
  limits: Pick<LimitsStore, 'of' | 'onChange'>,
  now: () => number,
): LimitedAccounts {
  const known = new Map<string, Known>();
  const stop = limits.onChange((account) => known.delete(account));

  const look = async (caller: Caller): Promise<Caller> => {
    const from = now();
    const rows = (await limits.of(caller.account)).filter(
      ({ subject }) => subject === 'account' || subject === 'operator',
    );
    const found = callerLimits(caller.account, null, rows, from);
    known.delete(caller.account);
    dropOldest(known, CACHED_MAX - 1);
    known.set(caller.account, { ...found, from, until: Math.min(found.until, from + CACHE_TTL_MS) });
    return { ...caller, ...found.parts };
  };

  return {
    limited(caller) {
      // Calls of a run are paid from its lock, which was counted.
      if (caller.key !== null || caller.run || caller.anonymous || caller.paying) return caller;
      const at = now();
      const found = known.get(caller.account);
      if (found === undefined || at < found.from || at >= found.until) return look(caller);
      const { budgets, rates } = found.parts;
      return budgets === undefined && rates === undefined ? caller : { ...caller, ...found.parts };
    },
    close() {
      stop();
      known.clear();
    },
  };
}
