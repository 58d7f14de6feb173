import type { Offer, Primitive } from '../call.ts';
import { directForm } from './offers.ts';

/** Names that were served a moment ago and that nobody serves now: whoever calls one is to come back, and not to take it for mistyped. */
export interface LatelyServed {
  /** The provider of these offers went away; `agoMs` before now. */
  add(offers: readonly Offer[], agoMs?: number): void;
  has(name: string, primitive: Primitive): boolean;
}

/** How long a name counts as lately served: time for a provider or a gateway to be replaced. */
export const LATELY_MS = 5 * 60_000;
const NAMES_MAX = 10_000;

/** `elapsed`: milliseconds that only go on. */
export function createLatelyServed(elapsed: () => number): LatelyServed {
  /** By the end of its time; the oldest come first. */
  const until = new Map<string, number>();
  const keyOf = (name: string, primitive: Primitive) => `${primitive} ${name}`;
  const note = (key: string, end: number) => {
    until.delete(key);
    until.set(key, end);
  };
  return {
    add(offers, agoMs = 0) {
      const end = elapsed() + LATELY_MS - agoMs;
      for (const offer of offers) {
        note(keyOf(offer.service, offer.primitive), end);
        note(keyOf(directForm(offer), offer.primitive), end);
      }
      for (const [key, at] of until) {
        if (until.size <= NAMES_MAX && at > elapsed()) break;
        until.delete(key);
      }
    },
    has: (name, primitive) => (until.get(keyOf(name, primitive)) ?? 0) > elapsed(),
  };
}
