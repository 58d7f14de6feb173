import type { CapName } from '#wire';
import type { Offer } from '#gateway';

/** How an offer takes the cap of a completion. */
interface TakenCap {
  /** The name of the cap; `none`: the offer takes no cap; null: not known, so that the client's name is tried. */
  readonly name: CapName | null;
  /** Most tokens of one completion; null where that is not known. */
  readonly bound: number | null;
}

/** Learnt from refusals. An offer that is registered anew is a new object, and is learnt anew. */
const learnt = new WeakMap<Offer, Partial<TakenCap>>();

/** The cap that an offer takes, by its block, corrected by its refusals. */
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

/** The names of a cap in refusals. */
const CAP_WORDS = /max_?(?:completion_?|output_?)?tokens/gi;

/**
 * Whether a request speaks of the cap beside the one field that it is sent in. A service may repeat a name or a
 * text of the consumer at the very beginning of its error, so what such a request is refused for counts for it
 * alone.
 */
export const speaksOfCap = (text: string): boolean => (text.match(CAP_WORDS)?.length ?? 0) > 1;
