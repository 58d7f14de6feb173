import { loadStatement, type Database, type Query } from '#store';
import type { JournalPlace } from '#billing/resolved';

/** How far the sums go. */
export interface RollUpState {
  /** Grows with every part that is added. */
  readonly version: bigint;
  /** When the newest counted call was resolved, in epoch milliseconds; 0 before the first. */
  readonly asOf: number;
  /** When a gateway added to them last, in epoch milliseconds. */
  readonly rolledAt: number;
  /** When a gateway looked for new accounts last. */
  readonly accountsAt: number;
  /** The first day of usage_days that was not removed for its age. */
  readonly usageSince: number;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const STATE = load('find-state');
const CURSORS = load('find-cursors');
const FORGET = [{ statement: load('step-version') }, { statement: load('forget-cursors') }];

export async function findState(query: Query): Promise<RollUpState> {
  const state = (await query(STATE))[0]!;
  return {
    version: state['version'] as bigint,
    asOf: Number(state['as_of']),
    rolledAt: Number(state['rolled_at']),
    accountsAt: Number(state['accounts_at']),
    usageSince: Number(state['usage_since']),
  };
}

/** By chain of the journal. On PostgreSQL each start of a gateway has a chain of its own. */
export type Cursors = ReadonlyMap<string, JournalPlace>;

/** The places in the journal up to which calls are added. */
export async function findCursors(query: Query): Promise<Cursors> {
  const cursors = new Map<string, JournalPlace>();
  for (const row of await query(CURSORS)) {
    const chain = row['chain'] as string;
    cursors.set(chain, { chain, n: Number(row['n']), position: Number(row['position']) });
  }
  return cursors;
}

/**
 * Lets the sums begin anew: the next turns of a roll-up make them of the whole journal. A part that is being added is
 * refused.
 */
export async function forgetSums(database: Pick<Database, 'batch'>): Promise<void> {
  await database.batch(FORGET);
}
