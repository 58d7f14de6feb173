import { loadStatement, type Value } from '#store';
import { ONE_CALL, type MeasuredWork, type ReportedUsage } from '#gateway';
import { FIRST_POLL_MS } from './begin-task.ts';
import { endingFromText, endingToText, type Ending } from './ending.ts';
import { listCalls, settleCalls } from './settle-calls.ts';
import type { TaskContext } from './task-context.ts';
import { contextOf, keyOf, stateOf, toTask, toTaskRow, type TaskRow } from './task-rows.ts';
import type { SeenTask, Observation, Task, TaskCall, TaskKey, Tasks } from './task.ts';

/** After this time another gateway checks whether an end was settled. */
const SETTLE_MS = 15_000;
/** The same if a call is settled by its own run. Its client may read the end of the reply slowly. */
const OWN_RUN_MS = 120_000;

const RECORD_OBSERVATION = loadStatement(import.meta.url, './sql/record-observation.sql');
const END = loadStatement(import.meta.url, './sql/end-task.sql');
const FORGET = loadStatement(import.meta.url, './sql/forget-task.sql');

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

export function createTaskEnd(context: TaskContext): TaskEnd {
  const { database, sink, read, now } = context;

  /**
   * Records the end, if the task still has the calls and the output of `task`. null if the task has ended meanwhile,
   * has changed, or expires after `over`.
   */
  const end = async (
    task: TaskRow,
    observation: Pick<Observation, 'contextId' | 'snapshot'> & { readonly state: string },
    ending: Ending,
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
    const [row] = await database.query(END, params);
    return row ? toTaskRow(row) : null;
  };

  /** Records what was seen of a running task. null if the task has changed meanwhile. */
  const recordObservation = async (row: TaskRow, state: string, observation: Observation): Promise<SeenTask | null> => {
    const [contextId, output] = [contextOf(observation.contextId), observation.output === true];
    if (state === row.state && (contextId === null || contextId === row.contextId) && (!output || row.output))
      return { task: toTask(row), settled: [] };
    const at = now();
    const noted = [...keyOf(row), state, contextId, at, at + FIRST_POLL_MS, FIRST_POLL_MS, output ? 1 : 0];
    const [changed] = await database.query(RECORD_OBSERVATION, noted);
    return changed ? { task: toTask(toTaskRow(changed)), settled: [] } : null;
  };

  /** A task that ends with its first message has no calls here, because the call of that message settles itself. */
  const callsOf = async (row: TaskRow) => (row.calls === 0 ? [] : listCalls(database, row));

  /** The ending of the task, computed from the observation. */
  const endingOf = (row: TaskRow, calls: readonly TaskCall[], state: string, observation: Observation): Ending => {
    const outcome = observation.end === 'cut' && !row.output && observation.output !== true ? 'free' : observation.end!;
    const work = {
      elapsedMs: Math.max(0, now() - row.askedAt),
      bytesIn: row.sentBytes,
      bytesOut: observation.bytes ?? 0,
    };
    const used =
      outcome === 'free'
        ? new Map<string, ReportedUsage>()
        : usageOfCalls(calls, observation, work, outcome === 'complete' ? UNREPORTED : UNSEEN_USAGE);
    return { outcome, reason: state, used };
  };

  /** Settles what is open of a task that had ended before. */
  const settleEnded = async (row: TaskRow, except?: string) => {
    // The gateway that gave it up may have stopped before it told anybody.
    if (row.open && endingFromText(row.ending!).reason === GAVE_UP) await sink.tellGivenUp?.(toTask(row));
    return settleCalls(context, row, await callsOf(row), except);
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
        sink.ended?.(toTask(over), false);
        return { task: toTask(over), settled: await settleCalls(context, over, calls, except) };
      }
    },

    forget: (key) => forgetTask(context, key, settleEnded),

    async giveUp(key) {
      for (;;) {
        const row = await read(key);
        if (!row?.live || row.expiresAt > now()) return null;
        const calls = await callsOf(row);
        const over = await end(row, row, givenUp(row, calls), now(), SETTLE_MS);
        if (!over) continue;
        sink.ended?.(toTask(over), true);
        await sink.tellGivenUp?.(toTask(over));
        await settleCalls(context, over, calls);
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
function givenUp({ output }: TaskRow, calls: readonly TaskCall[]): Ending {
  if (!output) return { outcome: 'free', reason: GAVE_UP, used: new Map() };
  return { outcome: 'cut', reason: GAVE_UP, used: new Map(calls.map(({ callId }) => [callId, ONE_CALL])) };
}

function usageOfCalls(
  calls: readonly TaskCall[],
  { usageOf }: Observation,
  work: MeasuredWork,
  otherwise: ReportedUsage,
): Map<string, ReportedUsage> {
  return new Map(
    calls.map(({ callId, price }, index) => [callId, usageOf?.({ callId, price }, index === 0, work) ?? otherwise]),
  );
}

const UNREPORTED: ReportedUsage = { usage: null, flags: ['usage_missing'] };
/** A provider that was stopped may have had no chance to report its usage, so it is not flagged. */
const UNSEEN_USAGE: ReportedUsage = { usage: null, flags: [] };

async function forgetTask(
  { database, read }: TaskContext,
  key: TaskKey,
  settleEnded: (row: TaskRow) => Promise<unknown>,
): Promise<boolean> {
  const row = await read(key);
  if (row === null) return true;
  if (row.live) return false;
  if (row.open) await settleEnded(row);
  return (await database.query(FORGET, keyOf(key))).length > 0 || (await read(key)) === null;
}
