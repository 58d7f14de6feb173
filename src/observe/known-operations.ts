import type { Call, Offer } from '#gateway';

/**
 * Operations of one offer that are remembered, and offers with operations. Calls of others are counted without
 * their name.
 */
const OPERATIONS_MAX = 256;
const OFFERS_MAX = 2000;
/** MCP's own advice for the name of a tool. */
const NAME_LENGTH_MAX = 128;

/**
 * The names of operations (tools) that a provider really has, as opposed to names that a consumer made up. They
 * bound the metrics that are counted by name.
 */
interface KnownOperations {
  /** The offer's server has served a call of this name. */
  learn(offer: Offer, operation: string): void;
  /** The call's operation; null without one, and for a name that only the consumer has used. */
  nameOf(call: Pick<Call, 'operation'>, offer: Offer): string | null;
}

/**
 * A name is known if `listed` says that the offer has it, if it has a price of its own there, or if the server has
 * once answered it without an error.
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
