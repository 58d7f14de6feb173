import { randomInt } from 'node:crypto';

/** The largest that a client may name. Several pictures of a request count up from theirs. */
const SEED_MAX = 2_147_483_647;
const PICTURES_MAX = 16;

/** The seed of a request: the one that it names, from 0 up; else, also for -1, a new one each time. */
export const seedOf = (given: unknown): number =>
  Number.isInteger(given) && (given as number) >= 0 ? (given as number) : randomInt(SEED_MAX - PICTURES_MAX);
