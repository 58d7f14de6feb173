import { membersOf, RawJsonError, splice, withMembers } from '#wire';
import { costOf } from '#gateway';
import type { SeenTask } from '#tasks';
import { withMetaAt } from '../wire/meta.ts';

/** The cost of a settled task, for the `_meta` of its result. */
export interface TaskCost {
  readonly callId: string;
  readonly settlement: SeenTask['settled'][number]['settlement'];
  /** A compact JWS; null without a receipt. */
  readonly receipt: string | null;
}

/**
 * The answer to `tasks/get` (JSON text), with the id that the client knows and `ttlMs` (null leaves the server's
 * value). The cost is put into the `_meta` of the tool's result, or of the answer if that has no result.
 */
export function showTask(text: string, taskId: string, ttlMs: number | null, cost: TaskCost | null): string {
  try {
    return show(text, taskId, ttlMs, cost);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    // A key occurs twice. The result may be paid for already, so it is parsed: the last value counts, as for most
    // readers.
    return show(JSON.stringify(JSON.parse(text)), taskId, ttlMs, cost);
  }
}

function show(text: string, taskId: string, ttlMs: number | null, cost: TaskCost | null): string {
  const named = { taskId: JSON.stringify(taskId), ...(ttlMs === null ? {} : { ttlMs: String(ttlMs) }) };
  const renamed = splice(text, [withMembers(text, membersOf(text).get('result')!, named)]);
  if (cost === null) return renamed;
  const answer = membersOf(renamed).get('result')!;
  const result = membersOf(renamed, answer.start).get('result');
  return withMetaAt(renamed, result && renamed[result.start] === '{' ? result : answer, costMeta(cost));
}

/** The gateway's members of `_meta`. They replace the server's. */
function costMeta({ callId, settlement, receipt }: TaskCost): Readonly<Record<string, string | null>> {
  return {
    'tollgate/generation': JSON.stringify({ id: callId, ...costOf({ settlement }) }),
    'tollgate/receipt': receipt === null ? null : JSON.stringify(receipt),
  };
}
