import type { Usage } from '#billing';
import type { Offer, ProviderFlag } from './call.ts';

const METERS = [
  ['prompt', 'prompt_tokens'],
  ['completion', 'completion_tokens'],
  ['second', 'seconds'],
] as const;

/** The usage that a tool or an agent claims for one call, or the reason why its claim counts for nothing. */
export interface ReportedUsage {
  readonly usage: Usage | null;
  readonly flags: readonly ProviderFlag[];
}

/** The gateway's own measure of the work that a claim is about. */
export interface MeasuredWork {
  /** Milliseconds from the request until the claim came; of a task, from its first request on. */
  readonly elapsedMs: number;
  /** Of the request; of a task, of all its messages. */
  readonly bytesIn: number;
  /** Of the answer; of a task, of all that was heard of it. */
  readonly bytesOut: number;
}

/** The counted part of a use that is not reported. */
export const ONE_CALL: ReportedUsage = { usage: { call: 1n }, flags: [] };

/**
 * Reads `tollgate/usage`: `{"prompt": 120, "completion": 30, "second": 1.5}`, also by the names that chat
 * completions have. One call is counted beside it. A missing or invalid claim is null with its flag: nothing is
 * charged.
 */
export function readReportedUsage(claim: unknown): ReportedUsage {
  if (claim === undefined || claim === null) return { usage: null, flags: ['usage_missing'] };
  if (typeof claim !== 'object') return { usage: null, flags: ['usage_invalid'] };
  const usage: Partial<Record<'prompt' | 'completion' | 'second' | 'call', bigint>> = { call: 1n };
  for (const [meter, alias] of METERS) {
    const said = claim as Readonly<Record<string, unknown>>;
    const units = said[meter] ?? said[alias];
    if (units === undefined || units === null) continue;
    if (typeof units !== 'number' || !Number.isFinite(units) || units < 0 || units > Number.MAX_SAFE_INTEGER)
      return { usage: null, flags: ['usage_invalid'] };
    // Part of a second, or of a token, is charged as a whole one.
    usage[meter] = BigInt(Math.ceil(units));
  }
  return { usage, flags: [] };
}

/** Tokens of a prompt that no request shows: the provider's own instructions, and descriptions of tools. */
const PROMPT_TOKENS_UNSEEN = 512;
/** Tokens of an answer that it does not show: the marks of its end, its role and its channel. */
const ANSWER_TOKENS_UNSEEN = 32;
/** Both ends round up to whole seconds, and begin to count at different moments. */
const SECONDS_SLACK = 1;

/**
 * The most that work of this size can have used: a token is a byte at least. Agents of several steps read their own
 * words again.
 */
function mostOf({
  elapsedMs,
  bytesIn,
  bytesOut,
}: MeasuredWork): Readonly<Record<'prompt' | 'completion' | 'second', bigint>> {
  return {
    prompt: BigInt(bytesIn + bytesOut + PROMPT_TOKENS_UNSEEN),
    completion: BigInt(bytesOut + ANSWER_TOKENS_UNSEEN),
    second: BigInt(Math.ceil(Math.max(0, elapsedMs) / 1000) + SECONDS_SLACK),
  };
}

/**
 * A claim held against what was measured: beyond it, it is flagged `usage_implausible`, and cut to it where the
 * provider dialled in. The operator's own providers are charged as they claim.
 */
export function heldAgainst(
  reported: ReportedUsage,
  { endpoint }: Pick<Offer, 'endpoint'>,
  work: MeasuredWork,
): ReportedUsage {
  const { usage, flags } = reported;
  if (usage === null) return reported;
  const most = mostOf(work);
  const beyond = METERS.map(([meter]) => meter).filter((meter) => (usage[meter] ?? 0n) > most[meter]);
  if (beyond.length === 0) return reported;
  const cut = endpoint.kind === 'direct' ? {} : Object.fromEntries(beyond.map((meter) => [meter, most[meter]]));
  return { usage: { ...usage, ...cut }, flags: [...flags, 'usage_implausible'] };
}
