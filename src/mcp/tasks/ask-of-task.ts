import { type ResponseMessage, UpstreamFailure } from '#wire';
import { measuredUse, type Offer, type Send } from '#gateway';
import type { Observation, Task, Tasks } from '#tasks';
import { ERROR, META, MODERN } from '../wire/revisions.ts';
import { providerFailure } from '../request/provider-failure.ts';
import { requestText } from '../wire/own-messages.ts';
import { askServer, type TaskQuestion } from './ask-server.ts';
import { TASKS } from './extension.ts';
import type { TaskNotes } from './keep-task.ts';
import { lifetimeOf, pauseOf } from './lifetime.ts';
import { readTask, observationOf, type ServerTask } from './read-task.ts';
import { serverTaskId } from './task-id.ts';

export interface AskOfTaskDeps {
  readonly tasks: Pick<Tasks, 'begin'>;
  readonly replyBytesMax: number;
  /** The longest life of a task, in milliseconds. */
  readonly ttlMs: number;
  /** Version of this program, as servers are told it. */
  readonly version: string;
  readonly now: () => number;
}

/**
 * A task as its server shows it, with what was seen of its state. `observation` is null for an error that says nothing
 * about the task.
 */
export type ShownTask =
  | {
      readonly kind: 'task';
      readonly response: ResponseMessage;
      readonly status: number;
      readonly shown: ServerTask;
      readonly observation: Observation;
    }
  | {
      readonly kind: 'error';
      readonly response: ResponseMessage;
      readonly status: number;
      readonly observation: Observation | null;
    }
  /** The answer is larger than the gateway accepts. Only an answer with a result can be so large. */
  | { readonly kind: 'large'; readonly failure: UpstreamFailure; readonly observation: Observation };

/** The id of a task at its server. */
export const atServer = ({ taskId }: Pick<Task, 'taskId'>): string => serverTaskId(taskId);

/**
 * Asks the server for a task, with the request in `asked` or with the gateway's own. Rejects with UpstreamFailure if
 * the server gives no answer, or an answer about another task.
 */
export async function askOfTask(
  deps: AskOfTaskDeps,
  task: Task,
  offer: Offer,
  send: Send,
  asked: Pick<TaskQuestion, 'id' | 'idText' | 'text'> = ownQuestion(task, deps.version),
  timeoutMs?: number,
): Promise<ShownTask> {
  const taskId = atServer(task);
  let answer;
  try {
    answer = await askServer(send, { ...asked, method: 'tasks/get', taskId }, deps.replyBytesMax, timeoutMs);
  } catch (failure) {
    if (!(failure instanceof UpstreamFailure) || !failure.tooLarge) throw failure;
    const used = measuredUse(failure, deps.now() - task.createdAt);
    return {
      kind: 'large',
      failure,
      observation: { state: 'completed', end: 'cut', output: true, usageOf: () => ({ usage: used, flags: [] }) },
    };
  }
  const { response, status } = answer;
  if (response.error !== undefined) {
    // The server has lost the task. It does no more work for it, so it is not paid.
    const lost: Observation | null =
      response.error.code === ERROR.invalidParams ? { state: 'failed', end: 'free' } : null;
    return { kind: 'error', response, status, observation: lost };
  }
  const shown = readTask(response.result);
  if (shown === null) throw providerFailure('the provider answered tasks/get without a task', status);
  if (shown.taskId !== taskId) throw providerFailure('the provider answered with another task', status);
  const { tool } = JSON.parse(task.notes) as TaskNotes;
  const observation = observationOf(offer, tool, shown, Buffer.byteLength(response.text));
  if (observation.end === null) await prolong(deps, task, shown);
  return {
    kind: 'task',
    response,
    status,
    shown,
    observation: observation.end === null ? { ...observation, pauseMs: pauseOf(shown.pollMs) } : observation,
  };
}

/** Extends a task if its server keeps it for longer than it said at first. */
async function prolong(
  { tasks, ttlMs, now }: AskOfTaskDeps,
  task: Task,
  { ttlMs: serverTtlMs, pollMs }: ServerTask,
): Promise<void> {
  const until = task.createdAt + lifetimeOf(serverTtlMs, ttlMs);
  if (!task.live || until - task.expiresAt < PROLONGED_MS_MIN) return;
  await tasks.begin({ ...task, ttlMs: until - now(), pauseMs: pauseOf(pollMs) }, null);
}

const PROLONGED_MS_MIN = 1_000;

function ownQuestion(task: Task, version: string): Pick<TaskQuestion, 'id' | 'idText' | 'text'> {
  const _meta = {
    [META.version]: MODERN,
    [META.capabilities]: { extensions: { [TASKS]: {} } },
    [META.clientInfo]: { name: 'tollgate', version },
  };
  const id = 'look';
  return { id, idText: JSON.stringify(id), text: requestText(id, 'tasks/get', { taskId: atServer(task), _meta }) };
}
