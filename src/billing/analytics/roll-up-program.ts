import { loadStatements, type Prepare, type Row } from '#store';
import { resolvedInLog, type JournalPlace } from '#billing/resolved';
import { type OfferCost, readCall, toCostFinder } from './call-facts.ts';
import { SumsOfCalls, type Sums } from './sums.ts';

/** A part of the journal: the sums of its calls, and the place where it ends. */
export interface ReadPart {
  readonly sums: Sums;
  readonly places: readonly JournalPlace[];
  /** Number of locks that the part resolves. */
  readonly calls: number;
  readonly groups: number;
  readonly hasMore: boolean;
}

/** The place after which to read, and about how many calls to read. */
export interface RequestedPart {
  readonly from: JournalPlace | null;
  readonly most: number;
}

/** The sums need this beside the journal. Plain data, so that it can be sent to another thread. */
export interface SumsContext {
  readonly hoursFrom: number;
  readonly costs: readonly OfferCost[];
}

const SQL = loadStatements(import.meta.url, './sql/roll-up.sql', ['findResolved']);

/** Reads a part of the log file beside the embedded database, and adds its calls up. */
export function run(prepare: Prepare, args: unknown, folder: string): ReadPart {
  const { from, most, hoursFrom, costs } = args as RequestedPart & SumsContext;
  const { ids, places, groups, hasMore } = resolvedInLog(prepare, folder, from, most);
  const find = prepare(SQL.findResolved);
  const sums = new SumsOfCalls(hoursFrom);
  const costOf = toCostFinder(costs);
  for (const id of ids) {
    const row = find.get(id) as Row | undefined;
    const call = row && readCall(row, costOf);
    if (call) sums.add(call);
  }
  return { sums: sums.sums(), places, calls: ids.length, groups, hasMore };
}
