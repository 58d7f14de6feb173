import type { Call, Offer } from '#gateway';

/**
 * Operations of one offer that are remembered, and offers that have any. Those beyond are told of without their name.
 */
const OPERATIONS_MAX = 256;
const OFFERS_MAX = 2000;
/** MCP's own advice for the name of a tool. */
const NAME_LENGTH_MAX = 128;

/**
 * Which names of operations (tools) are a provider's, and not made up by a consumer: what is counted by name is
 * bounded by it.
 */
export interface KnownOperations {
  /** The offer's server did what was asked of it by this name. */
  learn(offer: Offer, operation: string): void;
  /** The call's operation; null where it has none, or where nothing but a consumer says that there is such a one. */
  nameOf(call: Pick<Call, 'operation'>, offer: Offer): string | null;
}

/**
 * Known is what `listed` says that the offer has, what has a price of its own there, and what its server has once
 * answered without an error.
 */
export function createKnownOperations(
  listed: (offer: Offer, operation: string) => boolean = () => false,
): KnownOperations {
  const known = new Map<string, Set<string>>();
  return {
    learn(offer, operation) {
      if (operation.length > NAME_LENGTH_MAX) return;
      let names = known.get(offer.id);
      if (!names) {
        if (known.size >= OFFERS_MAX) return;
        known.set(offer.id, (names = new Set()));
      }
      if (names.size < OPERATIONS_MAX) names.add(operation);
    },
    nameOf({ operation }, offer) {
      if (operation === null) return null;
      if (known.get(offer.id)?.has(operation) || Object.hasOwn(offer.variants, operation)) return operation;
      return operation.length <= NAME_LENGTH_MAX && listed(offer, operation) ? operation : null;
    },
  };
}
