import type { Usage } from '#billing/amounts';
import type { Offer } from '#catalog';
import { flagClaim, NO_FLAGS, type RaisedFlag } from './flags.ts';

const METERS = [
  ['prompt', 'prompt_tokens'],
  ['completion', 'completion_tokens'],
  ['second', 'seconds'],
] as const;

/**
 * The usage that a tool or an agent claims for one call. `usage` is null and `flags` has the reason if the claim does
 * not count.
 */
export interface ReportedUsage {
  readonly usage: Usage | null;
  readonly flags: readonly RaisedFlag[];
}

/** The gateway's own measurement of the work that a claim is about. */
export interface MeasuredWork {
  /** Milliseconds from the request to the claim; for a task, from its first request. */
  readonly elapsedMs: number;
  /** Bytes of the request; for a task, of all its messages. */
  readonly bytesIn: number;
  /** Bytes of the answer; for a task, of everything that was received for it. */
  readonly bytesOut: number;
}

/** The usage of a call without reported usage: one call. */
export const ONE_CALL: ReportedUsage = { usage: { call: 1n }, flags: NO_FLAGS };

/**
 * Reads `tollgate/usage`: `{"prompt": 120, "completion": 30, "second": 1.5}`. The names that chat completions use are
 * accepted too. The call itself is added to it. For a missing or invalid claim, `usage` is null with a flag, and
 * nothing is charged.
 */
export function readReportedUsage(claim: unknown): ReportedUsage {
  if (claim === undefined || claim === null) return { usage: null, flags: ['usage_missing'] };
  if (typeof claim !== 'object') return { usage: null, flags: ['usage_invalid'] };
  const usage: Partial<Record<'prompt' | 'completion' | 'second' | 'call', bigint>> = { call: 1n };
  for (const [meter, alias] of METERS) {
    const members = claim as Readonly<Record<string, unknown>>;
    const units = members[meter] ?? members[alias];
    if (units === undefined || units === null) continue;
    if (typeof units !== 'number' || !Number.isFinite(units) || units < 0 || units > Number.MAX_SAFE_INTEGER)
      return { usage: null, flags: ['usage_invalid'] };
    // Parts of a second or of a token are rounded up.
    usage[meter] = BigInt(Math.ceil(units));
  }
  return { usage, flags: NO_FLAGS };
}

/** Allowance for prompt tokens that are not in the request: the provider's own instructions, and tool descriptions. */
const PROMPT_TOKENS_UNSEEN = 512;
/** Allowance for answer tokens that are not in its text: the marks of its end, its role and its channel. */
const ANSWER_TOKENS_UNSEEN = 32;
/** Gateway and provider both round up to whole seconds, and start counting at different moments. */
const SECONDS_SLACK = 1;

/**
 * The most that work of this size can have used. A token has at least one byte. The bytes of the answer count for the
 * prompt too, because agents of several steps read their own output again.
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
 * Compares a claim with the measured work. A claim above it gets the flag `usage_implausible`. If the provider is
 * connected by a tunnel, the claim is also reduced to the measured maximum. The operator's own providers are charged as
 * they claim.
 */
export function clampReportedUsage(
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
  const raised = beyond.reduce(
    (all, meter) => flagClaim(all, { meter, claimed: Number(usage[meter]), most: Number(most[meter]) }),
    flags,
  );
  return { usage: { ...usage, ...cut }, flags: raised };
}
