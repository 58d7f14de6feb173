import { pinned } from '#catalog';
import { OWN_ACCOUNT } from '#accounts';
import { endOnly, type FreeCall, runFree, type Pipeline } from '#call';
import { NEVER_ABORTED } from '#wire';
import type { EndTask, Tasks } from '#tasks';
import { cancelAtAgent } from '../agent/ask-for-task.ts';
import { chooseLink } from '../agent/resolve.ts';
import type { Cards } from '../cards/cards.ts';
import type { Notify } from '../protocol/notifications.ts';
import { type A2aResult, FREE, NO_RESULT } from '../protocol/ending.ts';
import { canceledStatus, keyOf, versionIn } from '../protocol/agent-tasks.ts';

interface EndTaskDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Pick<Tasks, 'saw'>;
  readonly notify: Notify;
  readonly replyBytesMax: number;
  /** Called if the agent could not be asked. */
  readonly onError: (error: unknown) => void;
}

const TIMEOUT_MS = 10_000;

/** Ends tasks of agents for the operator. Their clients and their webhooks read the reason in the status. */
export function createEndTask({ pipeline, cards, tasks, notify, replyBytesMax, onError }: EndTaskDeps): EndTask {
  return async (task, error) => {
    const { taskId, contextId, service, offerId, notes } = task;
    const key = keyOf(service, taskId);
    const context = contextId === null ? {} : { contextId };
    const status = canceledStatus(task, error);
    const snapshot = JSON.stringify({ id: taskId, ...context, status });
    // What the agent answers to the cancellation, or finishes meanwhile, must not be charged any more.
    const seen = await tasks.saw(key, { state: 'canceled', end: 'free', snapshot, error });
    if (seen?.task.snapshot !== snapshot) return null;
    notify(key, { version: '1.0' }, { statusUpdate: { taskId, contextId: contextId ?? '', status } });
    const requestId = `end-${taskId.slice(0, 64)}`;
    const call: FreeCall<A2aResult, never> = {
      primitive: 'agent',
      caller: { account: OWN_ACCOUNT, key: null, wallet: null },
      requestId,
      target: pinned(offerId),
      method: 'tasks/cancel',
      startAttempt: (offer, send) =>
        endOnly(async () => {
          const link = chooseLink(offer, await cards.facts(offer), versionIn(notes) ?? '1.0');
          await cancelAtAgent({ send, link, taskId, id: requestId, requestId, replyBytesMax });
          return { ...FREE, finishReason: null, result: NO_RESULT };
        }),
      timeoutMs: TIMEOUT_MS,
    };
    return async () => {
      try {
        await runFree(pipeline, call, NEVER_ABORTED);
      } catch (cause) {
        onError(new Error(`the agent of task ${taskId.slice(0, 64)} at ${service} was not told`, { cause }));
      }
    };
  };
}
