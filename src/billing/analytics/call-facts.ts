import { createHash } from 'node:crypto';
import { cost, METERS, type MicroUsd, type Rates, TOKEN_PARTS, type Usage } from '#billing/amounts';
import { causeOf } from '#billing/call-end';
import type { Row } from '#store';

/** A range of UTC days in days since 1970-01-01. `last` is included. */
export interface DayRange {
  readonly first: number;
  readonly last: number;
}

export const DAY_MS = 86_400_000;

/** Formats a day as `YYYY-MM-DD`. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

export const daysOf = ({ first, last }: DayRange): readonly number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);

/** Accounts that are no users: the gateway itself, and callers without a credential. */
const NOBODY: ReadonlySet<string> = new Set(['tollgate:gateway', 'tollgate:anonymous']);
export const DEVELOPMENT = 'tollgate:local:dev';

/** The facts of a resolved call that the sums count. Unknown texts are empty, unknown numbers are 0. */
export interface CallFacts {
  /** Day of the resolution, in days since 1970-01-01 UTC. */
  readonly day: number;
  /** Time of the resolution in epoch milliseconds. */
  readonly at: number;
  readonly account: string;
  readonly isDevelopment: boolean;
  /** Hash of the key. */
  readonly key: string;
  /** The names and values of its tags, in pairs, and MEMBER_TAG with its member. */
  readonly tags: readonly (readonly [string, string])[];
  readonly primitive: string;
  readonly service: string;
  readonly provider: string;
  /** Why the call failed, see causeOf; '' for a call that was served. */
  readonly cause: string;
  /** The operator pays its vendor so much for the call, micro-USD; null if unknown. */
  readonly cost: MicroUsd | null;
  readonly charged: bigint;
  readonly fee: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
  readonly images: number;
  readonly seconds: number;
  /** Milliseconds; 0 if unknown. */
  readonly firstByteMs: number;
  readonly durationMs: number;
}

/**
 * Callers may add to a service's name: a provider's id before it, or a preference for the choice of a provider after
 * it.
 */
const PIN = /^(?:0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44}):/;
const WISH = /:(?:floor|nitro)$/;

/** Removes both additions from the name of a service. */
export const nameOf = (called: string): string => called.replace(PIN, '').replace(WISH, '');

type RecordFields = Readonly<Record<string, unknown>>;

/**
 * Reads a resolved lock. Returns null for locks that are not the call of a user: the lock of a run, a lock whose call
 * continued under another lock, and calls of the gateway itself.
 */
export function readCall(row: Row, costOf: CostFinder): CallFacts | null {
  const account = row['account'] as string;
  if (NOBODY.has(account)) return null;
  const call = fieldsOf(row['lock_detail'] as string);
  if (call['run'] === true) return null;
  const run = fieldsOf(row['detail'] as string | null);
  if (run['outcome'] === 'continued') return null;
  const usage = fieldsOf(row['usage'] as string | null);
  const at = Number(row['resolved_at']);
  const primitive = textOf(call['primitive']);
  return {
    day: Math.floor(at / DAY_MS),
    at,
    account,
    isDevelopment: account === DEVELOPMENT,
    key: textOf(call['key']),
    tags: tagsOf(call),
    primitive,
    service: textOf(run['service']) || nameOf(textOf(call['service'])),
    provider: (row['provider'] as string | null) ?? '',
    cause: causeOf(row['state'] as string, call, run),
    cost: row['state'] === 'settled' ? costOfCall(usage, run, call, costOf) : 0n,
    charged: row['charged'] as bigint,
    fee: row['fee'] as bigint,
    prompt: tokensOf(usage, 'prompt'),
    completion: tokensOf(usage, 'completion'),
    reasoning: countOf(run['reasoning']),
    cached: countOf(run['cached']),
    // For other primitives `image` counts images in the prompt, which are not produced.
    images: primitive === 'image' ? countOf(usage['image']) : 0,
    seconds: countOf(usage['second']),
    firstByteMs: countOf(run['firstByteMs']),
    durationMs: countOf(run['durationMs']),
  };
}

/** The cost of an offer for the operator: its rates, and those of service tiers. */
export interface CostOfOffer {
  readonly rates: Rates;
  readonly serviceTiers: Readonly<Record<string, Rates>>;
  /** By the names of tools, or of variants of images and videos. */
  readonly variants?: Readonly<Record<string, Rates>>;
}

/** Finds the cost of the offer of a provider, by the provider's name. null if it is unknown. */
export type CostFinder = (providerName: string, service: string, primitive: string) => CostOfOffer | null;

export type OfferCost = readonly [providerName: string, service: string, primitive: string, cost: CostOfOffer];

export function toCostFinder(costs: readonly OfferCost[]): CostFinder {
  const known = new Map(
    costs.map(([provider, service, primitive, cost]) => [[provider, service, primitive].join('\n'), cost]),
  );
  return (...offer) => known.get(offer.join('\n')) ?? null;
}

/**
 * The vendor of a served call bills so much: null if the cost of its offer is unknown, 0 for a consumer's own key.
 * `call` and `run` are the parsed `lock_detail` and `detail` of its lock.
 */
export function costOfCall(
  usage: RecordFields,
  run: RecordFields,
  call: RecordFields,
  costOf: CostFinder,
): MicroUsd | null {
  if (run['ownKey'] === true) return 0n;
  const known = costOf(textOf(run['providerName']), textOf(run['service']), textOf(call['primitive']));
  if (known === null) return null;
  const special =
    rateOf(known.serviceTiers, run['serviceTier']) ??
    rateOf(known.variants, call['operation']) ??
    rateOfVariant(known.variants, run['variant']);
  return cost(special ?? known.rates, unitsOf(usage, run));
}

/** A variant without rates of its own (`1K/high`) has those of the one above it (`1K`). */
function rateOfVariant(rates: CostOfOffer['variants'], variant: unknown): Rates | undefined {
  if (typeof variant !== 'string') return undefined;
  const above = variant.lastIndexOf('/');
  return rateOf(rates, variant) ?? (above < 0 ? undefined : rateOfVariant(rates, variant.slice(0, above)));
}

/** A provider names the tier, and a consumer the tool. */
const rateOf = (rates: Readonly<Record<string, Rates>> | undefined, name: unknown): Rates | undefined =>
  rates !== undefined && typeof name === 'string' && Object.hasOwn(rates, name) ? rates[name] : undefined;

/** The metered units. An offer without a price for cached tokens has them in `prompt`, and its vendor may have one. */
function unitsOf(usage: RecordFields, run: RecordFields): Usage {
  const units = Object.fromEntries(METERS.map((meter) => [meter, countOf(usage[meter])]));
  const cached = units['input_cache_read'] === 0 ? Math.min(countOf(run['cached']), units['prompt']!) : 0;
  const split = { ...units, prompt: units['prompt']! - cached, input_cache_read: units['input_cache_read']! + cached };
  return Object.fromEntries(Object.entries(split).map(([meter, count]) => [meter, BigInt(count)]));
}

/** All tokens of the prompt or the completion. Billing counts those apart that have a price of their own. */
export const tokensOf = (usage: Readonly<Record<string, unknown>>, whole: 'prompt' | 'completion'): number =>
  TOKEN_PARTS[whole].reduce((sum, part) => sum + countOf(usage[part]), countOf(usage[whole]));

const WALLET = /^(?:solana|eip155):/;

export const isWallet = (account: string): boolean => WALLET.test(account);

/** 8 bytes of the hash of an account. They distinguish accounts without storing their names. */
export const hashOf = (account: string): bigint => createHash('sha256').update(account).digest().readBigInt64BE();

export const DEVELOPMENT_HASH = hashOf(DEVELOPMENT);

export function fieldsOf(json: string | null): RecordFields {
  if (json === null || json === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as RecordFields) : {};
  } catch {
    return {};
  }
}

/** Calls are summed up by their member as if it were a tag. No name of a tag has such a character. */
export const MEMBER_TAG = '@member';

const NO_TAGS: CallFacts['tags'] = [];

function tagsOf({ tags, member }: RecordFields): CallFacts['tags'] {
  const fields = typeof tags === 'object' ? (tags as RecordFields | null) : null;
  if (fields === null && typeof member !== 'string') return NO_TAGS;
  const pairs: (readonly [string, string])[] = [];
  for (const name in fields) if (typeof fields[name] === 'string') pairs.push([name, fields[name]]);
  if (typeof member === 'string') pairs.push([MEMBER_TAG, member]);
  return pairs;
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(Math.round(value)) && value > 0 ? Math.round(value) : 0;
