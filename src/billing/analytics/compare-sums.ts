import { loadStatements, rowsParam, type Query, type Row, type RunProgram, type Statement } from '#store';
import { resolvedInGroups } from '#billing/resolved';
import { archivedUntil } from '#billing';
import { DAY_MS, dateOf } from './call-facts.ts';
import { type Cursors, findCursors, findState } from './roll-up-state.ts';
import type { RequestedPart } from './roll-up-program.ts';

const SQL = loadStatements(import.meta.url, './sql/compare-sums.sql', [
  'addUncounted',
  'uncountedTable',
  'compareAccounts',
  'compareListings',
  'compareMarket',
  'compareUsers',
  'compareTags',
  'compareOffers',
  'comparePreviousDays',
  'compareUserCounts',
  'compareKnownCounts',
]);
const PROGRAM = new URL('./uncounted-program.ts', import.meta.url).href;

export const COMPARE_TEMPORARY = [SQL.uncountedTable];

const CHECKS: readonly { readonly statement: Statement; readonly say: (row: Row) => string }[] = [
  {
    statement: SQL.compareAccounts,
    say: (row) => `${dateOf(Number(row['day']))}, ${row['account']}: ${differences(row)} other than in the ledger`,
  },
  {
    statement: SQL.compareListings,
    say: (row) =>
      `${dateOf(Number(row['day']))}, ${row['primitive']} ${row['service']} of ${row['provider'] || 'nobody'}: ${differences(row)} other than those of the accounts`,
  },
  {
    statement: SQL.compareMarket,
    say: (row) =>
      `${dateOf(Number(row['day']))}, ${row['primitive']}: ${differences(row)} other than those of the services`,
  },
  {
    statement: SQL.compareTags,
    say: (row) =>
      `${dateOf(Number(row['day']))}, ${row['account']}: ${differences(row)} more of the tag ${row['tag']} than in all`,
  },
  {
    statement: SQL.compareOffers,
    say: (row) => `${dateOf(Number(row['day']))}, ${row['name']}: ${differences(row)} more in the console than in all`,
  },
  {
    statement: SQL.compareUsers,
    say: (row) => `${dateOf(Number(row['day']))}: ${row['users']} active users other than those of the accounts`,
  },
  {
    statement: SQL.comparePreviousDays,
    say: (row) => `${dateOf(Number(row['day']))}: ${row['users']} active users with another day before it`,
  },
  {
    statement: SQL.compareUserCounts,
    say: (row) => `${dateOf(Number(row['day']))}: ${row['users']} active users are counted otherwise`,
  },
  {
    statement: SQL.compareKnownCounts,
    say: (row) => `known since ${dateOf(Number(row['day']))}: ${row['users']} accounts are counted otherwise`,
  },
];

/** The comparison is skipped if the roll-up is more calls behind than this. */
const UNCOUNTED_MAX = 200_000;
const PAGE = 10_000;
const SHOWN = 5;

/**
 * Compares the sums with the ledger, as a check of the audit. `query` reads from one snapshot, in which
 * COMPARE_TEMPORARY was run. Calls that the roll-up has not added yet are left out.
 */
export async function compareSums(
  query: Query,
  program: RunProgram | null,
): Promise<{ readonly name: string; readonly ok: boolean; readonly detail: string }> {
  const name = 'analytics';
  const [state, archived] = await Promise.all([findState(query), archivedUntil(query)]);
  // The calls of earlier days are in an archive.
  const usageSince = Math.max(state.usageSince, archived / DAY_MS);
  const cursors = await findCursors(query);
  if (cursors.size === 0) return { name, ok: true, detail: 'nothing is added up yet' };
  const uncounted = await uncountedIds(query, program, cursors);
  if (uncounted === null)
    return { name, ok: true, detail: `not compared: more than ${UNCOUNTED_MAX} calls are not added up yet` };
  for (let from = 0; from < uncounted.length; from += PAGE)
    await query(SQL.addUncounted, [rowsParam(uncounted.slice(from, from + PAGE).map((id) => [id]))]);
  const problems: string[] = [];
  for (const { statement, say } of CHECKS) {
    const params = statement.text.includes('$1') ? [usageSince] : [];
    problems.push(...(await query(statement, params)).map(say));
  }
  if (problems.length > 0)
    return {
      name,
      ok: false,
      detail: `${problems.slice(0, SHOWN).join('; ')}${problems.length > SHOWN ? '; and more' : ''}`,
    };
  const behind = uncounted.length === 0 ? '' : `, ${uncounted.length} calls behind`;
  return { name, ok: true, detail: `equal: the sums of the days are those of the ledger${behind}` };
}

async function uncountedIds(
  query: Query,
  program: RunProgram | null,
  cursors: Cursors,
): Promise<readonly string[] | null> {
  if (!program) {
    const { ids, hasMore } = await resolvedInGroups(query, cursors, UNCOUNTED_MAX);
    return hasMore ? null : ids;
  }
  const part: RequestedPart = { from: [...cursors.values()][0] ?? null, most: UNCOUNTED_MAX };
  return (await program(PROGRAM, part)) as readonly string[] | null;
}

const FIGURES = ['calls', 'requests', 'failed', 'charged', 'fee', 'prompt', 'completion', 'reasoning', 'cached'];
const differences = (row: Row): string =>
  FIGURES.filter((figure) => (row[figure] ?? 0n) !== 0n)
    .map((figure) => `${row[figure]} ${figure}`)
    .join(', ');
