let turn = 0;

/**
 * The parts of a gateway under test that would otherwise differ from run to run. A test that asks about one of them
 * gives its own.
 */
export const NOTHING_LEFT_TO_LUCK = {
  /**
   * Near a half, and never twice the same. Of several offers the one with the best price serves, those of one price
   * serve in turn, and what waits for a random time does not wait in step.
   */
  random(): number {
    // The golden ratio: the numbers of its multiples behind the point are spread evenly.
    turn = (turn + 0.618_033_988_75) % 1;
    return 0.4 + 0.2 * turn;
  },
  /** An hour: however slow the machine is, no answer begins with a comment or white space instead of its status. */
  keepAliveMs: 3_600_000,
} as const;
