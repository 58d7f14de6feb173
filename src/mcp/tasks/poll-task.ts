import { type ProviderAdapter, endOnly, pinned, type Pipeline } from '#gateway';
import type { Poll, Observation } from '#tasks';
import { runFreeCall } from '../call/free-call.ts';
import { OURSELVES } from '../call/own-lists.ts';
import { freeEnd } from '../request/ending.ts';
import { askOfTask, type AskOfTaskDeps } from './ask-of-task.ts';

interface PollTaskDeps extends AskOfTaskDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  /** Called with tasks that could not be read. The gateway tries again. */
  readonly onUnseen: (error: Error) => void;
}

/** Timeout of the call. The watch waits for a shorter time. */
const POLL_MS = 20_000;

/** Looks at a task for the gateway itself, so that the gateway notices its end even if no client asks. */
export function createPollTask(deps: PollTaskDeps): Poll {
  return async (task, signal) => {
    let seen: Observation | null = null;
    const startAttempt: ProviderAdapter['startAttempt'] = (offer, send) =>
      endOnly(async () => {
        seen = (await askOfTask(deps, task, offer, send)).observation;
        return freeEnd(null);
      });
    const requestId = `look-${task.taskId.slice(0, 64)}`;
    try {
      await runFreeCall(
        deps.pipeline,
        {
          caller: OURSELVES,
          requestId,
          target: pinned(task.offerId),
          method: 'tasks/get',
          startAttempt,
          timeoutMs: POLL_MS,
        },
        signal,
      );
    } catch (error) {
      deps.onUnseen(
        new Error(`task ${task.taskId.slice(0, 64)} of ${task.account} at ${task.service} could not be read`, {
          cause: error,
        }),
      );
    }
    return seen;
  };
}
