import type { Call, Offer } from '#gateway';

/**
 * Maximum number of operations in memory for one offer, and of offers with operations. Calls of other operations are
 * counted without their name.
 */
const OPERATIONS_MAX = 256;
const OFFERS_MAX = 2000;
/** The maximum length that MCP recommends for the name of a tool. */
const NAME_LENGTH_MAX = 128;

/**
 * The names of operations (tools) that a provider really has. Consumers can invent other names. Counting only known
 * names limits the number of metrics.
 */
interface KnownOperations {
  /** The offer's server has served a call of this operation. */
  learn(offer: Offer, operation: string): void;
  /** The call's operation; null if it has none or if only the consumer has used the name. */
  nameOf(call: Pick<Call, 'operation'>, offer: Offer): string | null;
}

/**
 * A name is known if `listed` returns true for it, if it has its own price at the offer, or if the server has once
 * answered it without an error.
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
