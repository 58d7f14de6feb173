import { setImmediate as nextTurn } from 'node:timers/promises';
import { ownTurn } from '#wire';

/**
 * Bytes for one reader in one turn of the event loop. Without this limit, a reply that arrives as fast as it is read
 * would keep its reader running and block the event loop.
 */
const TURN_BYTES = 64 * 1024;
/** Replies larger than this take turns, so that only one of them continues in each turn of the event loop. */
const LARGE_BYTES = 512 * 1024;

/** Limits how fast one reply is given to its reader. */
export class Burst {
  #inTurn = 0;
  #bytes = 0;

  given(bytes: number): void {
    this.#inTurn += bytes;
    this.#bytes += bytes;
  }

  /** Settles when more bytes may be given. null if they may be given now. */
  get over(): Promise<unknown> | null {
    if (this.#inTurn < TURN_BYTES) return null;
    this.#inTurn = 0;
    return this.#bytes > LARGE_BYTES ? ownTurn() : nextTurn();
  }
}
