import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/* Work that would block all calls if it ran in one piece, in turns of the event loop. */

/**
 * A larger text is read in a separate turn of the event loop. Reading a text of this size takes about a millisecond.
 */
export const OWN_TURN_BYTES = 64 * 1024;

let last: Promise<unknown> = Promise.resolve();

/**
 * Resolves when the caller may do a piece of work of a few milliseconds. The whole process does one piece per turn of
 * the event loop. After a long piece there is a pause of the same length, so that other calls can continue. Do the work
 * before the next await.
 */
export function ownTurn(): Promise<void> {
  const before = last;
  const turn = Promise.withResolvers<void>();
  last = (async () => {
    await before;
    await nextTurn();
    const began = performance.now();
    turn.resolve();
    await nextTurn();
    const took = performance.now() - began;
    if (took > NOTICED_MS) await pause(took);
  })();
  return turn.promise;
}

const NOTICED_MS = 4;

/**
 * A function that waits for a turn of the event loop before more work is done than fits into this one. `perTurn` and
 * `work` are in any unit, such as characters. Work that is more than a turn alone is not divided.
 */
export function createPace(perTurn: number): (work: number) => Promise<void> | undefined {
  let remaining = perTurn;
  return (work) => {
    remaining -= work;
    if (remaining >= 0) return undefined;
    remaining = perTurn - work;
    return ownTurn();
  };
}
