const SHORTEST_MS = 2;
const LONGEST_MS = 40;

/**
 * Milliseconds between looks at something that will be so: soon at first, and then less and less often. Looks without a
 * pause take a processor from what is waited for.
 */
export function* pauses(): Generator<number, never> {
  for (let pause = SHORTEST_MS; ; pause = Math.min(pause * 1.5, LONGEST_MS)) yield pause;
}
