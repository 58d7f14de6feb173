import type { CapName } from '#wire';
import type { Offer } from '#gateway';

/** How an offer takes the cap of a completion. */
interface TakenCap {
  /** The name of the cap. `none`: the offer takes no cap. null: not known, so the client's name is tried. */
  readonly name: CapName | null;
  /** Most tokens of one completion; null if not known. */
  readonly bound: number | null;
}

/** Learnt from refusals. A new registration makes a new Offer object, so the gateway learns again. */
const learnt = new WeakMap<Offer, Partial<TakenCap>>();

/** How an offer takes the cap: as its block says, corrected by its refusals. */
export function takenCap(offer: Offer): TakenCap {
  const { cap = null, maxOutputTokens } = offer.model!;
  const shown = learnt.get(offer);
  if (shown === undefined) return { name: cap, bound: maxOutputTokens };
  const bound = shown.bound ?? null;
  return {
    name: shown.name ?? cap,
    bound: bound === null || maxOutputTokens === null ? (bound ?? maxOutputTokens) : Math.min(bound, maxOutputTokens),
  };
}

export function learnCap(offer: Offer, shown: Partial<TakenCap>): void {
  learnt.set(offer, { ...learnt.get(offer), ...shown });
}

/** Names of the cap as they appear in refusals. */
const CAP_WORDS = /max_?(?:completion_?|output_?)?tokens/gi;

/**
 * Whether a request mentions the cap outside of the one field that carries it. A service may repeat a name or a text
 * of the consumer at the start of its error. So a refusal of such a request counts for that request only.
 */
export const speaksOfCap = (text: string): boolean => (text.match(CAP_WORDS)?.length ?? 0) > 1;
