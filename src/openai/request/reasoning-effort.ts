import type { Offer } from '#gateway';
import type { ChatBody } from './chat-schema.ts';

/** `reasoning`, translated for a provider that does not list this field. */
interface ReasoningEffort {
  readonly fields: { readonly reasoning_effort?: unknown };
  /** Names of the members that such a provider does not get. */
  readonly dropped: readonly string[];
}

/**
 * Translates another router's `reasoning: {effort}` to `reasoning_effort` of the published chat API. That API has no
 * fields for the other members of `reasoning`.
 */
export function reasoningEffort({ reasoning, reasoning_effort: own }: ChatBody): ReasoningEffort {
  if (reasoning === undefined || reasoning === null) return { fields: {}, dropped: [] };
  if (typeof reasoning !== 'object' || Array.isArray(reasoning)) return { fields: {}, dropped: ['reasoning'] };
  const { effort, ...rest } = reasoning as Readonly<Record<string, unknown>>;
  const taken = typeof effort === 'string' && (own === undefined || own === null || own === effort);
  const others = effort === undefined || taken ? Object.keys(rest) : ['effort', ...Object.keys(rest)];
  return { fields: taken ? { reasoning_effort: effort } : {}, dropped: others.map((name) => `reasoning.${name}`) };
}

/** Offers that refused `reasoning`. A new registration makes a new Offer object, so the gateway learns again. */
const refusers = new WeakSet<Offer>();

export const refusesReasoning = (offer: Offer): boolean => refusers.has(offer);

/**
 * Whether an answer refuses the field `reasoning`, as services do that take only the published fields. If the answer
 * names it as the wrong parameter, later calls send no `reasoning` to the offer. A mere text counts for one call,
 * because it may repeat words of the consumer.
 */
export function readReasoningRefusal(offer: Offer, status: number, answer: Uint8Array): boolean {
  if (status !== 400 && status !== 422) return false;
  const text = Buffer.from(answer.subarray(0, ANSWER_BYTES_MAX)).toString('utf8');
  if (/"param"\s*:\s*"reasoning"/.test(text)) refusers.add(offer);
  else if (!/["'`]reasoning["'`]/.test(text.replaceAll('\\"', '"')) || !UNKNOWN.test(text)) return false;
  return true;
}

const ANSWER_BYTES_MAX = 4_096;
const UNKNOWN = /unknown|unrecogni[sz]ed|unsupported|unexpected|forbidden|not (?:permitted|supported|allowed)/i;
