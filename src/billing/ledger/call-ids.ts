/* The ids of archived calls are used for ever. Calls of one process have ids of one prefix and a counter, so all
   of them that an archive has are one row: the prefix with the first and the last counter. */

/** An id in two parts. `rest` is empty for an id that does not have the form of our own. */
interface IdParts {
  readonly prefix: string;
  readonly rest: string;
}

/** As `newCallId` of the gateway makes them: a prefix of the process, and a counter in base 36. */
const OWN = /^(gen-[A-Za-z0-9]{12})([0-9a-z]{6,12})$/;

/**
 * The parts of an id. The prefix ends with the length of the counter, because texts of different lengths would be in
 * another order than their numbers.
 */
export function partsOf(id: string): IdParts {
  const [, prefix, rest] = OWN.exec(id) ?? [];
  return prefix === undefined ? { prefix: id, rest: '' } : { prefix: `${prefix}:${rest!.length}`, rest: rest! };
}

/** The first and the last id of each prefix. */
export class IdRanges {
  readonly #ranges = new Map<string, { first: string; last: string }>();

  add(id: string): void {
    const { prefix, rest } = partsOf(id);
    const range = this.#ranges.get(prefix);
    if (range === undefined) this.#ranges.set(prefix, { first: rest, last: rest });
    else {
      if (rest < range.first) range.first = rest;
      if (rest > range.last) range.last = rest;
    }
  }

  /** Prefix, first and last. */
  rows(): readonly (readonly [string, string, string])[] {
    return [...this.#ranges].map(([prefix, { first, last }]) => [prefix, first, last]);
  }
}
