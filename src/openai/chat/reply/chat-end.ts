import type { Dialect } from '#http';
import { isObject, type LargeStrings, type UpstreamFailure } from '#wire';
import { malformed } from '#wire/replies';
import type { EventBatch } from '#bridge';
import type { GatewayError } from '#errors';
import {
  formatUsd,
  type Meter,
  METERS,
  type MeterRates,
  type MicroUsd,
  promptTokens,
  type Rates,
  rateOf,
  ratesAt,
  type ServiceTiers,
  settledPrice,
  TOKEN_PARTS,
  type Usage,
} from '#billing/amounts';
import { completionTokens } from '#billing/amounts';
import { type Cut, cutReply, errorOfCut, type ReplyEnd } from '#call';
import type { RaisedFlag } from '#call/flags';
import type { Continuation } from './continuation.ts';
import {
  claimedCompletion,
  cutUsage,
  overCapUsage,
  readUsage,
  type ChatUsage,
  type Output,
  type UsageBounds,
} from './chat-usage.ts';
import type { FinishReason } from './finish-reason.ts';

export interface ReplyContext extends UsageBounds {
  readonly callId: string;
  /** The name of the service that serves, which replies carry as `model`. */
  readonly service: string;
  /** Name of the provider that serves, which replies carry as `provider`. */
  readonly provider: string;
  /** The rates of the service tier that the call asks for. */
  readonly rates: Rates;
  /** The prices of the offer by service tier; absent if it has only one. */
  readonly serviceTiers?: ServiceTiers | undefined;
  /** Epoch seconds, for replies that do not say when they were made. */
  readonly created: number;
  readonly replyBytesMax: number;
  /** The account for which another thread reads a large reply. */
  readonly readFor: string;
  /** The reply is wanted as an object, so a complete one has to be read in this thread. */
  readonly asObject: boolean;
  /** The dialect that another thread writes a large reply in. Default `own`. */
  readonly dialect?: Dialect | undefined;
  /** Remembers what was given of a stream that another provider may go on with; absent for any other reply. */
  readonly continuation?: Continuation | undefined;
}

/** A piece of a reply: bytes of the client's wire, or events for the encoder of another wire. */
export type ChatPiece = Uint8Array | EventBatch;

/** The rest of a reply, written once its settlement is known: the last chunk of a stream, or a whole completion. */
export interface ChatResult {
  /** The piece before the rest. If it is events, they have all that `body` says besides the end. */
  readonly before: ChatPiece | null;
  readonly body: Record<string, unknown>;
  /**
   * Used instead of `body` for a large reply: its JSON without `usage` and without the last brace. It has at least
   * one member.
   */
  readonly written?: Uint8Array;
  /** Large strings of `body`. It has marks in their places. */
  readonly large?: LargeStrings;
  /** The `usage` that `body` gets, without its cost. */
  readonly usage: Readonly<Record<string, unknown>>;
  /** The part of the charge that is for the tokens and images of the prompt; default nothing. */
  readonly promptCost?: MicroUsd;
  /** The part of the charge that is for completion tokens; default nothing. */
  readonly completionCost?: MicroUsd;
  /** Further members of `usage.cost_details`. */
  readonly costDetails?: Readonly<Record<string, unknown>>;
  /** Why the reply was cut. The part that came is charged. Absent for a whole reply. */
  readonly cut?: GatewayError;
  /** Used instead of `body` for another wire: writes the end of the reply with its cost (`cost`, `cost_details`). */
  readonly native?: (cost: Readonly<Record<string, unknown>>, cut: GatewayError | null) => string;
}

/** The result of a settled chat call. It always has one, because its stream can be cut at any time. */
export function resultOf({ result }: { readonly result: ChatResult | null }): ChatResult {
  if (result === null) throw new Error('a chat call was settled without a result');
  return result;
}

export interface Produced extends Output {
  readonly body: Record<string, unknown>;
  readonly before: ChatPiece | null;
  /** The provider's `usage`, as it came. */
  readonly claim: unknown;
  readonly serviceTier?: unknown;
  /** One per finished choice. */
  readonly finishReasons: readonly FinishReason[];
  readonly choices: number;
  readonly malformed: boolean;
  /** The output ran past the cap, and was cut. */
  readonly overCap: boolean;
}

/**
 * The end of a complete reply. It is free if the provider itself says that it failed: every choice finished with
 * `error`, or its claim has no completion and no finish reason was given. Throws UpstreamFailure for a reply without
 * output, finish reason and usage.
 */
export function completeEnd(context: ReplyContext, produced: Produced): ReplyEnd<ChatResult> {
  const { claim, finishReasons } = produced;
  const usage = readUsage(claim, context, produced);
  const errors = finishReasons.filter((reason) => reason === 'error').length;
  const nothing = finishReasons.length === 0 && (claimedCompletion(claim) ?? produced.outputBytes) === 0;
  if (nothing && !came(produced)) throw withoutAnswer();
  const free = nothing || (errors > 0 && errors >= produced.choices);
  if (produced.overCap && !free) return overCapEnd(context, produced);
  return toEnd(
    context,
    produced,
    usage,
    free ? 'free' : 'complete',
    false,
    produced.malformed ? [...usage.flags, 'malformed_reply'] : usage.flags,
  );
}

/**
 * The end of a reply that was cut, by the provider's claim, else by what the gateway counted. See `chargeOfCut` for one
 * of which nothing came, and `asCut` for `streams`.
 */
export function cutEnd(context: ReplyContext, produced: Produced, cut: Cut, streams: boolean): ReplyEnd<ChatResult> {
  const usage = cutUsage(produced.claim, context, produced, cut);
  const end = toEnd(context, produced, usage, usage.usage ? 'cut' : 'free', usage.estimated, usage.flags);
  return asCut(end, produced, cut, streams);
}

/** The same end, of a cut reply. `streams`: its client has got the beginning of a stream. */
export function asCut(
  end: ReplyEnd<ChatResult>,
  produced: Pick<Output, 'outputBytes' | 'otherBytes'>,
  cut: Cut,
  streams: boolean,
): ReplyEnd<ChatResult> {
  const mark = cutReply(cut, came(produced) ? 'partly' : streams ? 'begun' : 'nothing');
  return {
    ...end,
    finishReason: end.finishReason ?? cut.reason,
    cut: mark,
    result: { ...end.result, cut: errorOfCut(mark) },
  };
}

/** The failure of a reply that has neither output nor an end. */
export const withoutAnswer = (): UpstreamFailure => malformed('it ended its reply without an answer');

const came = ({ outputBytes, otherBytes }: Pick<Output, 'outputBytes' | 'otherBytes'>): boolean =>
  outputBytes + otherBytes > 0;

/**
 * The end of a reply that ran past its budget. If the cap was sent, this is the provider's fault. Otherwise the
 * reply counts as cut, and is charged as one.
 */
export function overCapEnd(context: ReplyContext, produced: Produced): ReplyEnd<ChatResult> {
  const atLength: Produced = { ...produced, finishReasons: ['length'] };
  if (context.budget.keptBy === 'provider') {
    const { usage, estimated, flags } = overCapUsage(produced.claim, context, produced);
    return toEnd(context, atLength, usage, 'over_cap', estimated, flags);
  }
  const usage = cutUsage(produced.claim, context, produced, null);
  return toEnd(context, atLength, usage, 'cut', usage.estimated, usage.flags);
}

function toEnd(
  context: ReplyContext,
  produced: Produced,
  usage: ChatUsage,
  outcome: ReplyEnd['outcome'],
  estimated: boolean,
  flags: readonly RaisedFlag[],
): ReplyEnd<ChatResult> {
  const serviceTier = tierOf(produced.serviceTier, produced.claim);
  const result: ChatResult = {
    before: produced.before,
    body: produced.body,
    usage: usage.shownUsage,
    ...costOfParts(context, usage.usage, serviceTier),
  };
  const finishReason = produced.finishReasons[0] ?? null;
  const claimShown = outcome === 'complete' && !estimated ? shownClaim(usage, produced) : undefined;
  return {
    usage: usage.usage,
    outcome,
    estimated,
    finishReason,
    flags,
    result,
    details: usage.details,
    serviceTier,
    shownClaim: claimShown,
  };
}

/** The tokens of a shorter text are mostly those around it. */
const COMPARED_BYTES = 256;

/** The claimed tokens of a text that is shown; undefined if a part of the output is something else, or unclaimed. */
function shownClaim({ usage, details }: ChatUsage, { outputBytes, otherBytes }: Produced): ReplyEnd['shownClaim'] {
  if (usage === null || otherBytes > 0 || outputBytes < COMPARED_BYTES) return undefined;
  return { tokens: Math.max(0, Number(completionTokens(usage)) - details.reasoning), bytes: outputBytes };
}

/** The tier is stored with the call's record. */
const TIER_MAX = 32;

/** The service tier that a reply names, beside its usage or in it; null without one. */
export function tierOf(beside: unknown, claim: unknown): string | null {
  const tierName = typeof beside === 'string' ? beside : isObject(claim) ? claim['service_tier'] : null;
  return typeof tierName === 'string' && tierName !== '' ? tierName.slice(0, TIER_MAX) : null;
}

/**
 * The parts of a charge that are for tokens, for the answer and the record alone: `cost` of `#billing` makes the
 * charge. With what is charged for anything else they are exactly the whole charge: a micro-USD by which that is
 * rounded up belongs to the part with the largest fraction.
 */
export function costOfParts(
  { rates: requestedRates, serviceTiers }: Pick<ReplyContext, 'rates' | 'serviceTiers'>,
  usage: Usage | null,
  serviceTier: string | null,
): Pick<ChatResult, 'promptCost' | 'completionCost' | 'costDetails'> {
  if (usage === null) return { promptCost: 0n, completionCost: 0n };
  const { rates } =
    serviceTiers === undefined
      ? { rates: requestedRates }
      : settledPrice({ id: '', rates: requestedRates }, serviceTiers, serviceTier, usage);
  const at = rates.tiers === undefined ? rates : ratesAt(rates, promptTokens(usage));
  const [promptCost, completionCost] = roundedParts([
    sumOf(OF_PROMPT, at, usage),
    sumOf(OF_COMPLETION, at, usage),
    sumOf(OF_NO_TOKENS, at, usage),
  ]);
  const meters = TOLD.filter((meter) => usage[meter] !== undefined);
  if (meters.length === 0) return { promptCost, completionCost };
  const costDetails = Object.fromEntries(meters.map((meter) => [`${meter}_usd`, formatUsd(costOf(meter, at, usage))]));
  return { promptCost, completionCost, costDetails };
}

const OF_PROMPT: readonly Meter[] = ['prompt', ...TOKEN_PARTS.prompt, 'image'];
const OF_COMPLETION: readonly Meter[] = ['completion', ...TOKEN_PARTS.completion];
const OF_NO_TOKENS: readonly Meter[] = METERS.filter(
  (meter) => !OF_PROMPT.includes(meter) && !OF_COMPLETION.includes(meter),
);
const UNITS = 1_000_000n;

/** Meters whose part of a charge is told, if they have a price of their own. */
const TOLD: readonly Meter[] = [...TOKEN_PARTS.prompt, ...TOKEN_PARTS.completion, 'web_search'];

function costOf(meter: Meter, rates: MeterRates, usage: Usage): MicroUsd {
  const units = usage[meter];
  return units ? (rateOf(rates, meter) * units) / UNITS : 0n;
}

/** In millionths of a micro-USD. */
function sumOf(meters: readonly Meter[], rates: MeterRates, usage: Usage): bigint {
  let sum = 0n;
  for (const meter of meters) {
    const units = usage[meter];
    if (units) sum += rateOf(rates, meter) * units;
  }
  return sum;
}

/** Micro-USD of sums in millionths of it. Together they are all of the sums, rounded up once. */
function roundedParts<const T extends readonly bigint[]>(sums: T): { readonly [K in keyof T]: MicroUsd } {
  const parts: bigint[] = [];
  const fractions: bigint[] = [];
  let rest = 0n;
  for (const sum of sums) {
    parts.push(sum / UNITS);
    fractions.push(sum % UNITS);
    rest += sum % UNITS;
  }
  for (; rest > 0n; rest -= UNITS) {
    let largest = 0;
    for (let index = 1; index < fractions.length; index += 1)
      if (fractions[index]! > fractions[largest]!) largest = index;
    parts[largest]! += 1n;
    fractions[largest] = -1n;
  }
  return parts as unknown as { [K in keyof T]: MicroUsd };
}

/** The parts of a charge. A capped charge is first for the completion, then for the prompt. */
export function partsOfCharge(
  charged: MicroUsd,
  { promptCost = 0n, completionCost = 0n }: Pick<ChatResult, 'promptCost' | 'completionCost'>,
): { readonly prompt: MicroUsd; readonly completion: MicroUsd; readonly other: MicroUsd } {
  const completion = completionCost < charged ? completionCost : charged;
  const rest = charged - completion;
  const prompt = promptCost < rest ? promptCost : rest;
  return { prompt, completion, other: rest - prompt };
}
