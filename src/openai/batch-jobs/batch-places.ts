import { getOrInsert, Places } from '#wire';
import type { Batch } from './batch.ts';

/*
 * What a gateway does for batches at the same time: checks of their lines, batches whose lines it calls, and the calls.
 * Each has places of its own, so a batch is checked and refused soon, however many others run.
 */

/** A line that takes longer than this gives its place to another one. */
const LONG_LINE_MS = 60_000;
/** Long lines for each place of a line. They hold little but a connection. */
const LONG_LINES = 4;

interface LinesAtOnce {
  readonly linesAtOnce: number;
  readonly accountLinesAtOnce: number;
}

/** Places for lines that are called. They are few, so that calls whose clients wait find gateway and providers free. */
export const linePlaces = ({ linesAtOnce, accountLinesAtOnce }: LinesAtOnce): Places =>
  new Places({
    total: linesAtOnce,
    perShare: accountLinesAtOnce,
    longMs: LONG_LINE_MS,
    longTotal: LONG_LINES * linesAtOnce,
  });

/** Batches that have begun, for each place of a line: most of them wait for one. */
const BATCHES_PER_LINE = 4;
/** The most of them in one share: a quarter. */
const SHARES = 4;

/** Places for batches whose lines are called. A batch with a long line is a long one. */
export function runPlaces(linesAtOnce: number): Places {
  const total = BATCHES_PER_LINE * linesAtOnce;
  return new Places({ total, perShare: Math.max(1, total / SHARES), longTotal: total });
}

const CHECKS_MAX = 16;
/** A file of 50,000 lines takes up to a minute. Its check goes on, but no other one waits for it. */
const LONG_CHECK_MS = 5_000;
const LONG_CHECKS_MAX = 48;

export const checkPlaces = (): Places =>
  new Places({
    total: CHECKS_MAX,
    perShare: CHECKS_MAX / SHARES,
    longMs: LONG_CHECK_MS,
    longTotal: LONG_CHECKS_MAX,
  });

/** Uploads to providers at the same time: all requests of a file are in memory, twice. */
const UPLOADS_MAX = 4;

/** Each provider has one place, so one that does not answer holds up no other. */
const uploads = new Places({ total: UPLOADS_MAX, perShare: 1 });
const atProviders = new Map<string, Places>();

/** Resolves with the function that gives the place of an upload back, or with null if `stop` aborts before. */
export async function uploadPlace(provider: string, account: string, stop: AbortSignal): Promise<(() => void) | null> {
  const atProvider = getOrInsert(atProviders, provider, () => new Places({ total: 1, perShare: 1 }));
  const turn = await atProvider.take(account, { stop });
  if (turn === null) return null;
  const place = await uploads.take(provider, { stop });
  if (place === null) {
    turn.release();
    return null;
  }
  return () => {
    place.release();
    turn.release();
  };
}

/** The share of accounts that pay nothing: whoever they are, they get together what one account gets. */
export const UNPAID = '';

export const shareOf = ({ account, amount }: Pick<Batch, 'account' | 'amount'>): string =>
  amount === 0n ? UNPAID : account;
