import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** A larger text is read in turns. Below, reading it takes about a millisecond. */
export const OWN_TURN_BYTES = 64 * 1024;

let last: Promise<unknown> = Promise.resolve();

/**
 * Settles when the caller may do a piece of work that takes some milliseconds: one piece in each turn of the event
 * loop, over the whole process, and after a long one a pause as long as it took. Everybody else's calls go on in
 * between. Do the work before anything else is awaited.
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
