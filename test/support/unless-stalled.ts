/** Interval in milliseconds at which the clock is checked for stalls. */
const EVERY_MS = 10;
const TRIES = 6;

/**
 * Runs a test that depends on times of fractions of a second. If the test fails while this process stood still for at
 * least `stallMs`, it is run again. It fails if it fails without such a stall, or each time.
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
