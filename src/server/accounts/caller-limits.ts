import type { MicroUsd } from '#billing/amounts';
import { dropOldest } from '#wire';
import { type Access, accessOf } from './access.ts';
import type { Caller, AccountRates, CallerBudget, MinuteRates, TagBudget } from './caller.ts';
import {
  ownerOfLimits,
  budgetAt,
  type CallRules,
  type SpendLimit,
  budgetName,
  type LimitsOf,
  tagBudgetName,
} from './budgets.ts';
import type { LimitsStore } from './limits-store.ts';
import type { Tags } from './tags.ts';

/** The longest time that this gateway may still use limits which another gateway has changed. */
const CACHE_TTL_MS = 1_000;
const CACHED_MAX = 20_000;

/**
 * Adds the limits of the account to callers without an API key. The lookup of an API key has them already. Returns a
 * promise if the limits must be looked up, which happens at most once a second for each account.
 */
interface LimitedAccounts {
  limited(caller: Caller): Caller | Promise<Caller>;
  close(): void;
}

interface LimitsLookup {
  readonly from: number;
  /** Exclusive. Infinity while the lookup runs. */
  until: number;
  /** null while the lookup runs. */
  parts: CallerLimits['parts'] | null;
  readonly result: Promise<CallerLimits['parts']>;
}

export function createLimitedAccounts(
  limits: Pick<LimitsStore, 'limitsOf' | 'onChange'>,
  now: () => number,
): LimitedAccounts {
  const lookups = new Map<string, LimitsLookup>();
  // A running lookup is dropped too, because it may have read the limits from before the change.
  const stop = limits.onChange((account) => lookups.delete(account));

  const begin = (account: string, from: number): LimitsLookup => {
    const read = async () => {
      const rows = (await limits.limitsOf(account, from)).filter(({ subject }) => ownerOfLimits(subject) !== 'member');
      return callerLimits(account, null, rows, from);
    };
    const reading = read();
    const lookup: LimitsLookup = { from, until: Infinity, parts: null, result: reading.then(({ parts }) => parts) };
    lookups.delete(account);
    dropOldest(lookups, CACHED_MAX - 1);
    lookups.set(account, lookup);
    reading.then(
      ({ parts, until }) => {
        lookup.parts = parts;
        lookup.until = Math.min(until, from + CACHE_TTL_MS);
      },
      () => {
        if (lookups.get(account) === lookup) lookups.delete(account);
      },
    );
    return lookup;
  };

  const withLimits = (caller: Caller, parts: CallerLimits['parts']): Caller =>
    parts.budgets === undefined && parts.tagBudgets === undefined && parts.rates === undefined
      ? caller
      : { ...caller, ...parts };

  return {
    limited(caller) {
      if (caller.key !== null || caller.anonymous) return caller;
      const { account } = caller;
      const at = now();
      const known = lookups.get(account);
      // The TTL counts from the start of the lookup, so that a change takes effect within that time.
      const isGood = known !== undefined && at >= known.from && at < Math.min(known.until, known.from + CACHE_TTL_MS);
      const lookup = isGood ? known : begin(account, at);
      if (lookup.parts !== null) return withLimits(caller, lookup.parts);
      return lookup.result.then((parts) => withLimits(caller, parts));
    },
    close() {
      stop();
      lookups.clear();
    },
  };
}

/** The budgets, the rates and the access of a caller, and the time until which they are valid. */
interface CallerLimits {
  readonly parts: Pick<Caller, 'budgets' | 'tagBudgets' | 'rates'>;
  readonly access: Access | null;
  /** The lowest of the key's and its member's; null for none. */
  readonly askAbove: MicroUsd | null;
  /** Those of the key and of its member, whose value counts where both have one; null for none. */
  readonly tags: Tags | null;
  /** Epoch milliseconds of the earliest end of a period. Infinity if no period ends. */
  readonly until: number;
}

type LimitedKey = SpendLimit & MinuteRates & CallRules & { readonly hash: string };

/** Combines the limits of a key with those of its account and its member (`ofAccount`). */
export function callerLimits(
  account: string,
  key: LimitedKey | null,
  ofAccount: readonly LimitsOf[],
  at: number,
): CallerLimits {
  const budgets: CallerBudget[] = [];
  if (key !== null) budgets.push({ scope: 'key', ...budgetAt(key.hash, key, at) });
  const tagBudgets: TagBudget[] = [];
  let shared: AccountRates | null = null;
  for (const { subject, limits } of ofAccount) {
    const holder = ownerOfLimits(subject);
    const name = budgetName(account, subject);
    for (const rule of limits.budgets) budgets.push({ scope: holder, ...budgetAt(name, rule, at) });
    for (const rule of limits.tagBudgets)
      tagBudgets.push({
        scope: holder,
        tag: { name: rule.name, value: rule.value },
        ...budgetAt(tagBudgetName(account, subject, rule), { ...rule, limitSoft: false }, at),
      });
    if (holder !== 'member') shared = tighter(shared, limits, holder === 'operator');
  }
  const own = key === null || isUnset(key) ? null : key;
  const until = [...budgets, ...tagBudgets].reduce(
    (least, { resetsAt }) => Math.min(least, resetsAt ?? Infinity),
    Infinity,
  );
  return {
    parts: {
      ...(budgets.length === 0 ? {} : { budgets }),
      ...(tagBudgets.length === 0 ? {} : { tagBudgets }),
      ...(own === null && shared === null ? {} : { rates: { key: own && ratesOf(own), account: shared } }),
    },
    askAbove: lowest([key?.askAbove ?? null, ...ofAccount.map(({ limits }) => limits.askAbove)]),
    tags: tagsTogether(key?.tags ?? null, ...ofAccount.map(({ limits }) => limits.tags)),
    access: accessOf(key?.allowedServices ?? null, ...ofAccount.map(({ limits }) => limits.allowedServices)),
    until,
  };
}

/** Those of the member come last, because the account fixes them for all of its keys. */
const tagsTogether = (...all: readonly (Tags | null)[]): Tags | null =>
  all.reduce((one, other) => (one === null ? other : other === null ? one : { ...one, ...other }), null);

const lowest = (amounts: readonly (MicroUsd | null)[]): MicroUsd | null =>
  amounts.reduce((least, one) => (least === null || (one !== null && one < least) ? one : least), null);

const isUnset = ({ requestsPerMinute, tokensPerMinute }: MinuteRates): boolean =>
  requestsPerMinute === null && tokensPerMinute === null;

const ratesOf = ({ requestsPerMinute, tokensPerMinute }: MinuteRates): MinuteRates => ({
  requestsPerMinute,
  tokensPerMinute,
});

/** The lower value of each rate. null if neither has a rate. */
function tighter(one: AccountRates | null, other: MinuteRates, byOperator: boolean): AccountRates | null {
  if (isUnset(other)) return one;
  const requestsByOperator = one?.requestsByOperator === true || (byOperator && other.requestsPerMinute !== null);
  const tokensByOperator = one?.tokensByOperator === true || (byOperator && other.tokensPerMinute !== null);
  if (one === null) return { ...ratesOf(other), requestsByOperator, tokensByOperator };
  const least = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.min(a, b));
  return {
    requestsPerMinute: least(one.requestsPerMinute, other.requestsPerMinute),
    tokensPerMinute: least(one.tokensPerMinute, other.tokensPerMinute),
    requestsByOperator,
    tokensByOperator,
  };
}
