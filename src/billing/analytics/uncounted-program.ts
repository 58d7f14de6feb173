import type { Prepare } from '#store';
import { resolvedInLog } from '#billing/resolved';
import type { RequestedPart } from './roll-up-program.ts';

/** Reads the locks that the log resolves after a place. Returns null if there are more than `most`. */
export function run(prepare: Prepare, args: unknown, folder: string): readonly string[] | null {
  const { from, most } = args as RequestedPart;
  const { ids, hasMore } = resolvedInLog(prepare, folder, from, most);
  return hasMore ? null : ids;
}
