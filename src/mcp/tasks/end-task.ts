import { pinned } from '#catalog';
import { endOnly, type Pipeline } from '#call';
import { NEVER_ABORTED } from '#wire';
import type { EndTask, Task, Tasks } from '#tasks';
import { type McpFreeCall, OURSELVES, runFreeCall } from '../request/free-call.ts';
import { freeEnd } from '../request/ending.ts';
import { askServer, atServer, ownQuestion } from './ask-of-task.ts';

interface EndTaskDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly tasks: Pick<Tasks, 'saw'>;
  readonly replyBytesMax: number;
  readonly version: string;
  readonly onUnseen: (error: Error) => void;
}

const TIMEOUT_MS = 10_000;
const CANCELLED = 'cancelled';

/** Ends tasks of tools for the operator. A client that asks for such a task gets what is stored here. */
export function createEndTask({ pipeline, tasks, replyBytesMax, version, onUnseen }: EndTaskDeps): EndTask {
  return async (task, error) => {
    const { offerId, service, taskId } = task;
    const snapshot = JSON.stringify(endedTask(task, error));
    // What the server answers to the cancellation, or finishes meanwhile, must not be charged any more.
    const seen = await tasks.saw(task, { state: CANCELLED, end: 'free', snapshot, error });
    if (seen?.task.snapshot !== snapshot) return null;
    const question = ownQuestion(task, version, 'tasks/cancel');
    const call: McpFreeCall = {
      caller: OURSELVES,
      requestId: `end-${taskId.slice(0, 64)}`,
      target: pinned(offerId),
      method: question.method,
      startAttempt: (_offer, send) =>
        endOnly(async () => {
          await askServer(send, { ...question, taskId: atServer(task) }, replyBytesMax);
          return freeEnd(null);
        }),
      timeoutMs: TIMEOUT_MS,
    };
    return async () => {
      try {
        await runFreeCall(pipeline, call, NEVER_ABORTED);
      } catch (cause) {
        onUnseen(new Error(`the server of task ${taskId.slice(0, 64)} at ${service} was not told`, { cause }));
      }
    };
  };
}

/** The answer to `tasks/get`, in the form of its server. */
const endedTask = ({ taskId, createdAt }: Task, statusMessage: string) => ({
  resultType: 'complete',
  taskId,
  status: CANCELLED,
  statusMessage,
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date().toISOString(),
  ttlMs: null,
});
