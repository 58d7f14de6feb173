import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadStatement, type Query, type RunProgram } from '#store';
import { resolvedInGroups, type JournalPlace } from '#billing/resolved';
import { readCall } from './call-facts.ts';
import type { RequestedPart, ReadPart } from './roll-up-program.ts';
import { rowsText } from './rows-text.ts';
import { SumsOfCalls } from './sums.ts';

const PROGRAM = new URL('./roll-up-program.ts', import.meta.url).href;
const FIND_MANY = loadStatement(import.meta.url, './sql/find-many-resolved.sql');
/** Number of calls that are added without a pause on the event loop: about 2 ms. */
const PAGE = 250;

/**
 * Reads the journal from the places of its chains, until about `most` calls are found, and adds these calls up. The
 * embedded database does this in its own thread.
 */
export async function readPart(
  query: Query,
  program: RunProgram | null,
  from: ReadonlyMap<string, JournalPlace>,
  most: number,
): Promise<ReadPart> {
  if (program) {
    const asked: RequestedPart = { from: [...from.values()][0] ?? null, most };
    return (await program(PROGRAM, asked)) as ReadPart;
  }
  const { ids, places, groups, hasMore } = await resolvedInGroups(query, from, most);
  const sums = new SumsOfCalls();
  for (let begin = 0; begin < ids.length; begin += PAGE) {
    const page = ids.slice(begin, begin + PAGE).map((id) => [id]);
    for (const row of await query(FIND_MANY, [rowsText(page)])) {
      const call = readCall(row);
      if (call) sums.add(call);
    }
    // Lets other work of the event loop run in between.
    await nextTurn();
  }
  return { sums: sums.sums(), places, calls: ids.length, groups, hasMore };
}
