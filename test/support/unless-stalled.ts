/** How late a look at the clock is before one says that the machine stood still. */
const EVERY_MS = 10;
const TRIES = 6;

/**
 * For what is true within fractions of a second of a machine that goes on, and of no other: silences and times that are
 * short so that a test is. Runs it again where it failed while this process stood still for `stallMs` or longer. What
 * fails without that, or each time, fails.
 */
export async function unlessStalled<T>(stallMs: number, run: () => Promise<T>): Promise<T> {
  for (let left = TRIES - 1; ; left -= 1) {
    let last = performance.now();
    let longest = 0;
    const look = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last - EVERY_MS);
      last = now;
    };
    const looks = setInterval(look, EVERY_MS);
    try {
      return await run();
    } catch (error) {
      look();
      if (left === 0 || longest < stallMs) throw error;
      console.log(`  once more: this process stood still for ${Math.round(longest)} ms`);
    } finally {
      clearInterval(looks);
    }
  }
}
