const SHORTEST_MS = 2;
const LONGEST_MS = 40;

/**
 * Growing pauses in milliseconds for polling. Polling without pauses would take CPU time from the work that is awaited.
 */
export function* pauses(): Generator<number, never> {
  for (let pause = SHORTEST_MS; ; pause = Math.min(pause * 1.5, LONGEST_MS)) yield pause;
}
