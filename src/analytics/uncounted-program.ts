import type { Prepare } from '#store';
import { resolvedInLog } from '#billing/resolved';
import type { AskedPart } from './roll-up-program.ts';

/** The locks that the log resolves after a place; null where they are more than were asked for. */
export function run(prepare: Prepare, args: unknown, folder: string): readonly string[] | null {
  const { from, most } = args as AskedPart;
  const { ids, hasMore } = resolvedInLog(prepare, folder, from, most);
  return hasMore ? null : ids;
}
