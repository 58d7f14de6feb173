import { type Conversation, endOnly, pinned, type Pipeline } from '#gateway';
import type { Look, Sight } from '#tasks';
import { runFreeCall } from '../call/free-call.ts';
import { OURSELVES } from '../call/own-lists.ts';
import { freeEnd } from '../turn/ending.ts';
import { askOfTask, type AskOfTaskDeps } from './ask-of-task.ts';

interface LookAtTaskDeps extends AskOfTaskDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  /** Called with tasks that could not be read. The gateway tries again. */
  readonly onUnseen: (error: Error) => void;
}

/** Timeout of the call. The watch waits for a shorter time. */
const LOOK_MS = 20_000;

/** Looks at a task for the gateway itself, so that the gateway notices its end even if no client asks. */
export function createLookAtTask(deps: LookAtTaskDeps): Look {
  return async (task, signal) => {
    let seen: Sight | null = null;
    const converse: Conversation['converse'] = (offer, send) =>
      endOnly(async () => {
        seen = (await askOfTask(deps, task, offer, send)).sight;
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
          converse,
          timeoutMs: LOOK_MS,
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
