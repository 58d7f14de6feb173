import { loadStatements, type Query, type RunProgram } from '#store';
import { ArchiveError } from './archive-lines.ts';
import { closingChains, type ChainEnd } from './closing-rows.ts';
import { findEnds } from './journal-groups.ts';
import { registeredArchives, type RegisteredArchive } from './registered.ts';

/** The content of an archive that is to be made, as of one snapshot. */
export interface ArchivePlan {
  readonly number: number;
  readonly name: string;
  readonly previous: RegisteredArchive | null;
  /** Epoch milliseconds: from the first moment to before `endsAt`. */
  readonly beginsAt: number;
  readonly endsAt: number;
  /** The archive has the groups after `from` up to `to`. */
  readonly from: readonly ChainEnd[];
  readonly to: readonly ChainEnd[];
  /** Calls that ended before `endsAt` and stay, because a call above or under them did not. */
  readonly openCalls: ReadonlySet<string>;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['openTrees']);

export const DAY_MS = 86_400_000;
/**
 * The newest days stay in the tables: limits of a month, replies for idempotency keys, tasks and figures of the last 30
 * days read their calls there.
 */
export const RECENT_DAYS = 35;

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The name of an archive. It tells which days are in it. */
const nameOf = (number: number, endsAt: number): string =>
  `tollgate-archive-${String(number).padStart(4, '0')}-before-${dayOf(endsAt)}.jsonl.zst`;

/** Throws ArchiveError if nothing may be archived before `endsAt`. */
export function refuseTime(
  endsAt: number,
  {
    now,
    recentDays,
    newest,
  }: { readonly now: number; readonly recentDays: number; readonly newest: RegisteredArchive | null },
): void {
  if (!Number.isSafeInteger(endsAt) || endsAt % DAY_MS !== 0)
    throw new ArchiveError('an archive ends at the beginning of a day (UTC), such as 2026-06-01');
  const latest = Math.floor(now / DAY_MS - recentDays) * DAY_MS;
  if (endsAt > latest)
    throw new ArchiveError(
      `the last ${recentDays} days stay in the database: the latest day to archive before is ${dayOf(latest)}, not ${dayOf(endsAt)}`,
    );
  if (newest !== null && endsAt <= newest.endsAt)
    throw new ArchiveError(`everything before ${dayOf(newest.endsAt)} is in an archive already (${newest.name})`);
}

/** Whether all groups up to these ends are in the figures of calls by day. */
export type IsCounted = (query: Query, ends: readonly ChainEnd[]) => Promise<boolean>;

interface PlanOptions {
  readonly endsAt: number;
  readonly now: number;
  /** At least RECENT_DAYS. */
  readonly recentDays: number;
  readonly isCounted: IsCounted;
}

/** Finds out what an archive that ends at `endsAt` has. Rejects with ArchiveError if it cannot be made now. */
export async function planArchive(
  query: Query,
  program: RunProgram | null,
  { endsAt, now, recentDays, isCounted }: PlanOptions,
): Promise<ArchivePlan> {
  const previous = (await registeredArchives(query)).at(-1) ?? null;
  refuseTime(endsAt, { now, recentDays, newest: previous });
  if (previous !== null && previous.droppedAt === null)
    throw new ArchiveError(`the rows of ${previous.name} are not dropped yet`);
  const number = (previous?.number ?? 0) + 1;
  const from = previous === null ? [] : await closingChains(query, previous.number);
  const to = await findEnds(query, program, from, endsAt);
  const grown = to.filter(({ chain, n }) => n > (from.find((end) => end.chain === chain)?.n ?? 0));
  if (!(await isCounted(query, grown)))
    throw new ArchiveError('the figures of calls by day do not have all calls of this time yet; try again in a minute');
  const openCalls = (await query(SQL.openTrees, [endsAt])).map((row) => row['id'] as string);
  const beginsAt = previous?.endsAt ?? 0;
  return { number, name: nameOf(number, endsAt), previous, beginsAt, endsAt, from, to, openCalls: new Set(openCalls) };
}

/** Number of groups of the journal that an archive has. */
export const groupsOf = ({ from, to }: Pick<ArchivePlan, 'from' | 'to'>): number =>
  to.reduce((sum, end) => sum + end.n - (from.find(({ chain }) => chain === end.chain)?.n ?? 0), 0);
