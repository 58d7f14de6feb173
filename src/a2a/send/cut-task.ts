import { randomUUID } from 'node:crypto';
import { UpstreamFailure, type JsonObject } from '#wire';
import {
  measuredUse,
  ONE_CALL,
  type Call,
  type Offer,
  type ReplyEnd,
  type MeasuredWork,
  type ReportedUsage,
} from '#gateway';
import { ownerOf, type Tasks, type TaskKey } from '#tasks';
import { FREE, usageOf, type A2aTail } from './ending.ts';
import type { Link } from '../agent/resolve.ts';
import { readEvent, type A2aEvent, stateName } from '../wire/events.ts';
import { translateEvent } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/** The reason why the gateway ends a task that its agent has not ended. */
export interface TaskCut {
  readonly reason: 'timeout' | 'shutdown' | 'too_large' | 'gave_up';
  /** The same reason in words. */
  readonly failure: Error;
}

interface CutTaskDeps {
  readonly tasks: Pick<Tasks, 'find' | 'saw'>;
  readonly notify: (key: TaskKey, link: Link, value: unknown) => void;
  readonly onError: (error: unknown) => void;
}

/** A task at the moment of the cut. */
interface TaskAtCut {
  readonly call: Call;
  readonly offer: Offer;
  readonly link: Link;
  readonly key: TaskKey;
  readonly contextId: string | null;
  /** The task has given output. */
  readonly gave: boolean;
  /** The client's version. */
  readonly version: A2aVersion;
  readonly later: boolean;
  readonly covered: boolean;
  /** The work for the message. */
  readonly work: MeasuredWork;
  /** The agent's answer to the cancellation; null if it gave no answer. */
  readonly canceled: A2aEvent | null;
}

/**
 * Ends a task that the gateway no longer waits for, and then notifies the client's webhooks. The output until then is
 * charged. Later output charges nothing. If another request has already seen the task's end, that end counts.
 */
export async function cutTask(
  { tasks, notify, onError }: CutTaskDeps,
  at: TaskAtCut,
  { reason, failure }: TaskCut,
): Promise<ReplyEnd> {
  const { call, offer, link, key, contextId, version, later, covered, canceled, work } = at;
  const large = failure instanceof UpstreamFailure && failure.tooLarge ? failure : null;
  const before = await tasks.find(key, ownerOf(call.caller)).catch(() => null);
  const gave = at.gave || large !== null || canceled?.output === true || before?.output === true;
  const why = wordsOf(failure.message, { large: large !== null, gave });
  const status = {
    state: stateName('canceled'),
    timestamp: new Date().toISOString(),
    message: {
      messageId: randomUUID(),
      taskId: key.taskId,
      ...contextOf(contextId),
      role: 'ROLE_AGENT',
      parts: [{ text: why }],
    },
  };
  const said = {
    taskId: key.taskId,
    contextId: contextId ?? '',
    status,
    ...(gave ? { metadata: { 'tollgate/cut': why } } : {}),
  };
  const event: JsonObject = { statusUpdate: said };
  // Only paid output is shown later, and output that is too large cannot be shown.
  const snapshot = gave && large === null ? null : JSON.stringify({ id: key.taskId, ...contextOf(contextId), status });

  const reported = canceled?.usage;
  const unreported = reported === undefined || reported === null;
  const used: ReportedUsage =
    unreported && large !== null && !later
      ? { usage: measuredUse(large, work.elapsedMs), flags: [] }
      : usageOf(offer, unreported ? undefined : reported, true, {
          ...work,
          bytesOut: work.bytesOut + (large?.received ?? 0),
        });
  const observation = {
    state: 'canceled',
    end: 'cut',
    output: gave,
    snapshot,
    usageOf: (_call: unknown, first: boolean) => (first ? used : ONE_CALL),
  } as const;
  const seen = await tasks.saw(key, observation, covered ? undefined : call.id).catch(onError);
  if (seen && seen.task.state !== 'canceled') return endedElsewhere({ tasks }, call, key);
  notify(key, link, translateEvent('1.0', link.version, event));
  const tail: A2aTail = {
    text: JSON.stringify(translateEvent('1.0', version, event)),
    event: readEvent('1.0', event),
    error: null,
    cut: null,
  };
  if (!gave) return { ...FREE, finishReason: reason, tail };
  const estimated = large !== null && unreported && offer.priceCap !== null && !later;
  return { ...(later ? ONE_CALL : used), outcome: 'cut', estimated, finishReason: reason, tail };
}

/** The end of a call whose task ended through another request. The call is settled before this resolves. */
export async function endedElsewhere(
  { tasks }: Pick<CutTaskDeps, 'tasks'>,
  call: Call,
  key: TaskKey,
): Promise<ReplyEnd> {
  const seen = await tasks.saw(key, { state: null, end: 'cut' });
  const state = seen?.task.state ?? 'canceled';
  const charged =
    seen?.settled.some(({ callId, settlement }) => callId === call.id && settlement.charged > 0n) === true;
  const why = `The task is ${state}: ${charged ? 'its output until then is charged' : 'nothing is charged'}`;
  const tail: A2aTail = { text: null, event: null, error: null, cut: why };
  return charged
    ? { ...FREE, ...ONE_CALL, outcome: 'cut', finishReason: state, tail }
    : { ...FREE, finishReason: state, tail };
}

const contextOf = (contextId: string | null) => (contextId === null ? {} : { contextId });

function wordsOf(why: string, { large, gave }: { readonly large: boolean; readonly gave: boolean }): string {
  if (large) return `The agent's answer is charged but cannot be delivered, because ${why}. Ask for a smaller answer`;
  if (gave) return `The task was canceled because ${why}. The output until then is charged`;
  return `The task was canceled because ${why}. The agent had no output until then. Nothing is charged`;
}
