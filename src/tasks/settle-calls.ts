import { loadStatement, rowReader, type Database } from '#store';
import type { Settlement } from '#billing';
import type { ReportedUsage } from '#gateway';
import { endingFromText, settlementFromText, settlementToText, type Ending } from './ending.ts';
import { keyOf, toTask, type TaskRow } from './task-rows.ts';
import type { TaskCall, TaskKey } from './task.ts';
import type { TaskContext } from './task-context.ts';

/** A call of a task, as it is stored. */
interface CallRow extends TaskCall {
  readonly createdAt: number;
  readonly keptUntil: number;
  /** null until the call is settled. */
  readonly settlement: Settlement | null;
}

interface SettledCall {
  readonly callId: string;
  readonly settlement: Settlement;
}

type SettleCallsContext = Pick<TaskContext, 'database' | 'settlePendingCall' | 'nameOf' | 'sink'>;

const LIST = loadStatement(import.meta.url, './sql/list-calls.sql');
const NOTE = loadStatement(import.meta.url, './sql/note-settlement.sql');
const CLOSE = loadStatement(import.meta.url, './sql/close-task.sql');

/** The most concurrent settlements of one task. */
const WIDTH = 32;
const NOTHING_USED: ReportedUsage = { usage: null, flags: [] };
const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/** All calls of a task, in the order in which they were added. */
export async function listCalls(database: Pick<Database, 'query'>, key: TaskKey): Promise<readonly CallRow[]> {
  return (await database.query(LIST, keyOf(key))).map(toCallRow);
}

/**
 * Settles every open call of an ended task by the stored ending, and records each charge. Calls that were settled
 * before, by any gateway, stay as they are and are included in the result. If a call could not be settled, it rejects
 * after the other calls are settled.
 */
export async function settleCalls(
  options: SettleCallsContext,
  task: TaskRow,
  calls: readonly CallRow[],
  except?: string,
): Promise<readonly SettledCall[]> {
  const { database } = options;
  const ending = endingFromText(task.ending!);
  const open = calls.filter(({ callId, settlement }) => settlement === null && callId !== except);
  const settled = new Map<string, Settlement>();
  let failure: { readonly reason: unknown } | null = null;
  for (let from = 0; from < open.length; from += WIDTH) {
    const group = open.slice(from, from + WIDTH);
    const results = await Promise.allSettled(group.map((call) => settleCall(options, task, call, ending)));
    for (const [index, result] of results.entries()) {
      if (result.status === 'fulfilled') settled.set(group[index]!.callId, result.value);
      else failure ??= result;
    }
  }
  // The charges are in the ledger already. If these records are lost, the next attempt reads them from there.
  if (task.open)
    await database.batch([
      ...[...settled].map(([callId, settlement]) => ({
        statement: NOTE,
        params: [callId, settlementToText(settlement)],
      })),
      { statement: CLOSE, params: keyOf(task) },
    ]);
  if (failure) throw failure.reason;
  return calls.flatMap(({ callId, settlement: before }) => {
    const settlement = before ?? settled.get(callId);
    return settlement ? [{ callId, settlement }] : [];
  });
}

async function settleCall(
  { settlePendingCall, nameOf, sink }: SettleCallsContext,
  task: TaskRow,
  call: CallRow,
  ending: Ending,
): Promise<Settlement> {
  const { callId, price, most = null } = call;
  const { outcome, reason } = ending;
  const { usage, flags } = ending.used.get(callId) ?? NOTHING_USED;
  const providerName = nameOf(task);
  const durationMs = Math.max(0, task.endedAt! - call.createdAt);
  const concluded = await settlePendingCall(callId, {
    price,
    most,
    provider: task.provider,
    usage,
    outcome,
    detail: { service: task.service, providerName, outcome, estimated: false, finishReason: reason, flags, durationMs },
  });
  // A lock that does not exist holds no money.
  if (!concluded) return NOTHING;
  const { settlement, lock, before } = concluded;
  if (!before)
    sink.concluded?.({
      task: toTask(task),
      call: { callId, price },
      providerName,
      outcome,
      usage,
      settlement,
      flags,
      durationMs,
      lock,
    });
  return settlement;
}

const toCallRow = rowReader<CallRow>({
  createdAt: Number,
  keptUntil: Number,
  settlement: (text) => (text === null ? null : settlementFromText(text as string)),
});
