import { randomInt } from 'node:crypto';

/**
 * The largest seed of a request. The pictures of one request have consecutive seeds, so a random seed stays below it.
 */
const SEED_MAX = 2_147_483_647;
const PICTURES_MAX = 16;

/** Returns the seed of a request if it is 0 or more. Otherwise, also for -1, returns a new random seed. */
export const seedOf = (given: unknown): number =>
  Number.isInteger(given) && (given as number) >= 0 ? (given as number) : randomInt(SEED_MAX - PICTURES_MAX);
