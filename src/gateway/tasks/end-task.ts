import { loadStatements, type Value } from '#store';
import { type MeasuredWork, ONE_CALL, type ReportedUsage } from '#call';
import { type NamedFlags, nameFlags } from '#call/flags';
import type { Settlement, Usage } from '#billing/amounts';
import { FIRST_POLL_MS } from './begin-task.ts';
import {
  type CallRow,
  contextOf,
  keyOf,
  listCalls,
  settlementToText,
  stateOf,
  type TaskContext,
  type TaskRow,
  toTask,
  toTaskRow,
} from './task-rows.ts';
import type { SeenTask, Observation, Task, TaskCall, TaskKey, Tasks } from './task.ts';

/** After this time another gateway checks whether an end was settled. */
const SETTLE_MS = 15_000;
/** As SETTLE_MS, if a call is settled by its own run: its client may read the end of the reply slowly. */
const OWN_RUN_MS = 120_000;

/** The most concurrent settlements of one task. */
const WIDTH = 32;
const NOTHING_USED: UsedByCall = { usage: null, flags: [] };
const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

const SQL = loadStatements(import.meta.url, './sql/tasks.sql', [
  'noteSettlement',
  'closeTask',
  'recordObservation',
  'endTask',
  'forgetTask',
]);

interface SettledCall {
  readonly callId: string;
  readonly settlement: Settlement;
}

/** Records what is seen of tasks, and settles their calls at their end. */
export interface TaskEnd extends Pick<Tasks, 'saw' | 'forget'> {
  /**
   * Ends a task whose time is over. Its messages are charged if it has given output; otherwise it is free. Resolves
   * with null if the task has ended already or its time was extended.
   */
  giveUp(key: TaskKey): Promise<Task | null>;
  /** Settles the open calls of an ended task, if the gateway that saw its end stopped before it had settled them. */
  settleRest(key: TaskKey): Promise<void>;
}

export function createTaskEnd({ database, settlePendingCall, nameOf, sink, read, now }: TaskContext): TaskEnd {
  /**
   * Records the end, if the task still has the calls and the output of `task`. null if the task has ended meanwhile,
   * has changed, or expires after `over`.
   */
  const end = async (
    task: TaskRow,
    observation: Pick<Observation, 'contextId' | 'snapshot'> & { readonly state: string },
    ending: TaskEnding,
    over: number,
    settleMs: number,
  ) => {
    const at = now();
    const params: Value[] = [
      ...keyOf(task),
      stateOf(observation.state),
      contextOf(observation.contextId),
      observation.snapshot ?? null,
      at,
      endingToText(ending),
      at + settleMs,
      task.calls,
      over,
      task.output ? 1 : 0,
    ];
    const [row] = await database.query(SQL.endTask, params);
    return row ? toTaskRow(row) : null;
  };

  /** Records what was seen of a running task. null if the task has changed meanwhile. */
  const recordObservation = async (row: TaskRow, state: string, observation: Observation): Promise<SeenTask | null> => {
    const [contextId, output] = [contextOf(observation.contextId), observation.output === true];
    if (state === row.state && (contextId === null || contextId === row.contextId) && (!output || row.output))
      return { task: toTask(row), settled: [] };
    const at = now();
    const noted = [...keyOf(row), state, contextId, at, at + FIRST_POLL_MS, FIRST_POLL_MS, output ? 1 : 0];
    const [changed] = await database.query(SQL.recordObservation, noted);
    return changed ? { task: toTask(toTaskRow(changed)), settled: [] } : null;
  };

  /** A task that ends with its first message has no calls here, because the call of that message settles itself. */
  const callsOf = async (row: TaskRow) => (row.calls === 0 ? [] : listCalls(database, row));

  /** The ending of the task, computed from the observation. */
  const endingOf = (row: TaskRow, calls: readonly TaskCall[], state: string, observation: Observation): TaskEnding => {
    const outcome = observation.end === 'cut' && !row.output && observation.output !== true ? 'free' : observation.end!;
    const work = {
      elapsedMs: Math.max(0, now() - row.askedAt),
      bytesIn: row.sentBytes,
      bytesOut: observation.bytes ?? 0,
    };
    const used =
      outcome === 'free'
        ? new Map<string, UsedByCall>()
        : usageOfCalls(calls, observation, work, outcome === 'complete' ? UNREPORTED : UNSEEN_USAGE);
    const { error = null, variant = null } = observation;
    return { outcome, reason: state, used, error, variant };
  };

  const settleCall = async (task: TaskRow, call: CallRow, ending: TaskEnding): Promise<Settlement> => {
    const { callId, price, most = null } = call;
    const { outcome, reason, error, variant } = ending;
    const { usage, ...flags } = ending.used.get(callId) ?? NOTHING_USED;
    const providerName = nameOf(task);
    const durationMs = Math.max(0, task.endedAt! - call.createdAt);
    const settled = await settlePendingCall(callId, {
      price,
      most,
      provider: task.provider,
      usage,
      outcome,
      detail: {
        service: task.service,
        providerName,
        outcome,
        estimated: false,
        finishReason: reason,
        ...flags,
        durationMs,
        ...(variant === null ? {} : { variant }),
        ...(error === null ? {} : { error, errorCode: 'call_ended' }),
      },
    });
    // A lock that does not exist holds no money.
    if (!settled) return NOTHING;
    const { settlement, lock, before } = settled;
    if (!before)
      sink.concluded({
        task: toTask(task),
        call: { callId, price },
        providerName,
        outcome,
        usage,
        settlement,
        ...flags,
        durationMs,
        lock,
      });
    return settlement;
  };

  /**
   * Settles every open call of an ended task by the stored ending, and records each charge. Calls that were settled
   * before, by any gateway, stay as they are and are included in the result. If a call could not be settled, it rejects
   * after the other calls are settled. `except`: a call that its own run settles.
   */
  const settleCalls = async (
    task: TaskRow,
    calls: readonly CallRow[],
    except?: string,
  ): Promise<readonly SettledCall[]> => {
    const ending = endingFromText(task.ending!);
    const open = calls.filter(({ callId, settlement }) => settlement === null && callId !== except);
    const settled = new Map<string, Settlement>();
    let failure: { readonly reason: unknown } | null = null;
    for (let from = 0; from < open.length; from += WIDTH) {
      const group = open.slice(from, from + WIDTH);
      const results = await Promise.allSettled(group.map((call) => settleCall(task, call, ending)));
      for (const [index, result] of results.entries()) {
        if (result.status === 'fulfilled') settled.set(group[index]!.callId, result.value);
        else failure ??= result;
      }
    }
    // The charges are in the ledger already. If these records are lost, the next attempt reads them from there.
    if (task.open)
      await database.batch([
        ...[...settled].map(([callId, settlement]) => ({
          statement: SQL.noteSettlement,
          params: [callId, settlementToText(settlement)],
        })),
        { statement: SQL.closeTask, params: keyOf(task) },
      ]);
    if (failure) throw failure.reason;
    return calls.flatMap(({ callId, settlement: before }) => {
      const settlement = before ?? settled.get(callId);
      return settlement ? [{ callId, settlement }] : [];
    });
  };

  /** Settles what is open of a task that had ended before. */
  const settleEnded = async (row: TaskRow, except?: string) => {
    // The gateway that gave it up may have stopped before it told anybody.
    if (row.open && endingFromText(row.ending!).reason === GAVE_UP) await sink.tellGivenUp(toTask(row));
    return settleCalls(row, await callsOf(row), except);
  };

  return {
    async saw(key, observation, except) {
      for (;;) {
        const row = await read(key);
        if (!row) return null;
        if (!row.live) {
          if (observation.end === null) return { task: toTask(row), settled: [] };
          return { task: toTask(row), settled: await settleEnded(row, except) };
        }
        const state = observation.state === null ? row.state : stateOf(observation.state);
        if (observation.end === null) {
          const seen = await recordObservation(row, state, observation);
          if (seen) return seen;
          continue;
        }
        const calls = await callsOf(row);
        const over = await end(
          row,
          { ...observation, state },
          endingOf(row, calls, state, observation),
          Number.MAX_SAFE_INTEGER,
          except === undefined ? SETTLE_MS : OWN_RUN_MS,
        );
        if (!over) continue;
        sink.ended(toTask(over), false);
        return { task: toTask(over), settled: await settleCalls(over, calls, except) };
      }
    },

    async forget(key) {
      const row = await read(key);
      if (row === null) return true;
      if (row.live) return false;
      if (row.open) await settleEnded(row);
      return (await database.query(SQL.forgetTask, keyOf(key))).length > 0 || (await read(key)) === null;
    },

    async giveUp(key) {
      for (;;) {
        const row = await read(key);
        if (!row?.live || row.expiresAt > now()) return null;
        const calls = await callsOf(row);
        const over = await end(row, row, givenUp(row, calls), now(), SETTLE_MS);
        if (!over) continue;
        sink.ended(toTask(over), true);
        await sink.tellGivenUp(toTask(over));
        await settleCalls(over, calls);
        return toTask(over);
      }
    },

    async settleRest(key) {
      const row = await read(key);
      if (row && !row.live) await settleEnded(row);
    },
  };
}

/** The reason in the records of a task's calls if no end of the task was seen in time. */
const GAVE_UP = 'gave_up';

/** Each message of a task that gave output is paid as one call. Other usage is not known. */
function givenUp({ output }: TaskRow, calls: readonly TaskCall[]): TaskEnding {
  if (!output) return { outcome: 'free', reason: GAVE_UP, used: new Map(), error: null, variant: null };
  const used = new Map(calls.map(({ callId }) => [callId, useOfCall(ONE_CALL)]));
  return { outcome: 'cut', reason: GAVE_UP, used, error: null, variant: null };
}

function usageOfCalls(
  calls: readonly TaskCall[],
  { usageOf }: Observation,
  work: MeasuredWork,
  otherwise: ReportedUsage,
): Map<string, UsedByCall> {
  return new Map(
    calls.map(({ callId, price }, index) => [
      callId,
      useOfCall(usageOf?.({ callId, price }, index === 0, work) ?? otherwise),
    ]),
  );
}

const UNREPORTED: ReportedUsage = { usage: null, flags: ['usage_missing'] };
/** A provider that was stopped may have had no chance to report its usage, so it is not flagged. */
const UNSEEN_USAGE: ReportedUsage = { usage: null, flags: [] };

/**
 * The end of a task, stored when the end is first seen. Every gateway settles the task's calls by this record, also
 * later.
 */
interface TaskEnding {
  readonly outcome: 'complete' | 'cut' | 'free';
  /** The reason for the end, as shown in the records of its calls. */
  readonly reason: string;
  /** By call id. */
  readonly used: ReadonlyMap<string, UsedByCall>;
  readonly error: string | null;
  /** See Observation. */
  readonly variant: string | null;
}

/** The usage of a call, with the flags of its report. */
interface UsedByCall extends NamedFlags {
  readonly usage: Usage | null;
}

const useOfCall = ({ usage, flags }: ReportedUsage): UsedByCall => ({ usage, ...nameFlags(flags) });

type Units = readonly (readonly [meter: string, units: string])[];

function endingToText({ outcome, reason, used, error, variant }: TaskEnding): string {
  const calls = [...used].map(([id, { usage, flags, claims }]) => [
    id,
    usage && Object.entries(usage).map(([meter, units]) => [meter, String(units)]),
    ...(flags.length > 0 ? [flags] : []),
    ...(claims === undefined ? [] : [claims]),
  ]);
  return JSON.stringify({ outcome, reason, usage: calls, error: error ?? undefined, variant: variant ?? undefined });
}

function endingFromText(text: string): TaskEnding {
  const {
    outcome,
    reason,
    usage,
    error = null,
    variant = null,
  } = JSON.parse(text) as {
    readonly outcome: TaskEnding['outcome'];
    readonly reason: string;
    readonly usage: readonly (readonly [string, Units | null, NamedFlags['flags']?, NamedFlags['claims']?])[];
    readonly error?: string;
    readonly variant?: string;
  };
  const used = usage.map(([id, units, flags = [], claims]) => {
    const counted = units && Object.fromEntries(units.map(([meter, count]) => [meter, BigInt(count)]));
    return [id, { usage: counted, flags, ...(claims === undefined ? {} : { claims }) }] as const;
  });
  return { outcome, reason, used: new Map(used), error, variant };
}
