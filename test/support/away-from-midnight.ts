import { setTimeout as sleep } from 'node:timers/promises';

const DAY_MS = 86_400_000;
/** Longer than a file of tests takes on a busy machine, and shorter than the time that a hook may take. */
const BEFORE_MS = 90_000;

/**
 * Waits until it is midnight (UTC), if that is near. Afterwards no day, week or month ends between two steps of a test.
 * For tests whose gateway has the clock of the machine: one that may have any other clock begins at noon.
 */
export async function awayFromMidnight(): Promise<void> {
  for (let left = leftOfDay(); left <= BEFORE_MS; left = leftOfDay()) await sleep(left);
}

const leftOfDay = () => DAY_MS - (Date.now() % DAY_MS);
