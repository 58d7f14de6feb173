import { setImmediate as nextTurn } from 'node:timers/promises';
import { ownTurn } from '#wire';

/**
 * Bytes for one reader in one turn of the event loop. A reply that arrives as fast as it is read would otherwise keep
 * its reader running without end.
 */
const TURN_BYTES = 64 * 1024;
/**
 * A reply that is larger takes turns with all others that are, so that in each turn of the event loop one of them
 * goes on.
 */
const LARGE_BYTES = 512 * 1024;

/** How fast one reply is given to its reader. */
export class Burst {
  #inTurn = 0;
  #bytes = 0;

  given(bytes: number): void {
    this.#inTurn += bytes;
    this.#bytes += bytes;
  }

  /** Settles when more may be given; null where that is now. */
  get over(): Promise<unknown> | null {
    if (this.#inTurn < TURN_BYTES) return null;
    this.#inTurn = 0;
    return this.#bytes > LARGE_BYTES ? ownTurn() : nextTurn();
  }
}
