import type { FastifyRequest } from 'fastify';
import type { MemoryHold } from '../held-memory.ts';

const HELD = Symbol('memory of the body');
type Holding = FastifyRequest & { [HELD]?: HeldBody };

/**
 * The memory of one body, and of what its request takes beside it. It is given back when its last user has ended: the
 * request, and calls that it began.
 */
export class HeldBody {
  /** null while nothing is counted. */
  hold: MemoryHold | null = null;
  /** As much is counted for the body itself. */
  bytes = 0;
  #users = 0;

  /** Another user of the body. Call the returned function when that user has ended. */
  keep(): () => void {
    this.#users += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#users -= 1;
      if (this.#users === 0) this.hold?.release();
    };
  }
}

/** The memory of a request, which begins with this if it has not begun. */
export const heldBy = (request: Holding): HeldBody => (request[HELD] ??= new HeldBody());

/** The memory of a request that `heldBy` has begun; undefined for a small body that it was not asked for. */
export const begunFor = (request: Holding): HeldBody | undefined => request[HELD];

/** The memory of a request; null if nothing of it is counted, as for a small body. */
export const heldBodyOf = (request: FastifyRequest): HeldBody | null => {
  const held = (request as Holding)[HELD];
  return held === undefined || held.hold === null ? null : held;
};
