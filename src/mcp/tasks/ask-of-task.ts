import { type ResponseMessage, type RequestId, onlyAnswerTo, parseMessage } from '#json-rpc';
import { isObject, type JsonObject, spanAt, splice, UpstreamFailure } from '#wire';
import { measuredUse, type Send, endOnly, type Pipeline } from '#call';
import { type Offer, pinned } from '#catalog';
import type { Observation, Task, Tasks, TaskPoll } from '#tasks';
import { ERROR, META, MODERN } from '../wire/revisions.ts';
import { providerFailure, withoutResponse, refuseCredentialStatus, freeEnd } from '../request/ending.ts';
import { requestText } from '../wire/own-messages.ts';
import { taskResult } from '../shapes/results.ts';
import { readable } from '../shapes/shape.ts';
import { TASKS } from '../request/extension.ts';
import type { TaskNotes } from './keep-task.ts';
import { lifetimeOf, pauseOf, readTask, observationOf, type ServerTask, serverTaskId } from './server-task.ts';
import { firstResponse, MODERN_POST_HEADERS } from '../servers/legacy-server.ts';
import { standardHeaders } from '../wire/param-headers.ts';
import { type McpFreeCall, OURSELVES, runFreeCall } from '../request/free-call.ts';

export interface AskOfTaskDeps {
  readonly tasks: Pick<Tasks, 'begin'>;
  readonly replyBytesMax: number;
  /** The longest life of a task, in milliseconds. */
  readonly ttlMs: number;
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
      readonly serverTask: ServerTask;
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
 * Asks the server for a task, with the request in `question` or with the gateway's own. Rejects with UpstreamFailure if
 * the server gives no answer, or an answer about another task.
 */
export async function askOfTask(
  deps: AskOfTaskDeps,
  task: Task,
  offer: Offer,
  send: Send,
  question: Pick<TaskQuestion, 'id' | 'idText' | 'text'> = ownQuestion(task, deps.version, 'tasks/get'),
  timeoutMs?: number,
): Promise<ShownTask> {
  const taskId = atServer(task);
  let answer;
  try {
    answer = await askServer(send, { ...question, method: 'tasks/get', taskId }, deps.replyBytesMax, timeoutMs);
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
  const readableOne = withReadableResult(response);
  const serverTask = readTask(readableOne.result);
  if (serverTask === null) throw providerFailure('the provider answered tasks/get without a task', status);
  if (serverTask.taskId !== taskId) throw providerFailure('the provider answered with another task', status);
  const { tool } = JSON.parse(task.notes) as TaskNotes;
  const observation = observationOf(offer, tool, serverTask, Buffer.byteLength(response.text));
  if (observation.end === null) await prolong(deps, task, serverTask);
  return {
    kind: 'task',
    response: readableOne,
    status,
    serverTask,
    observation: observation.end === null ? { ...observation, pauseMs: pauseOf(serverTask.pollMs) } : observation,
  };
}

/**
 * A task (response of its server) whose result clients can read. A result that no client can read becomes one with
 * `isError` that says why, which is free.
 */
function withReadableResult(response: ResponseMessage): ResponseMessage {
  const { text, result } = response;
  const output = isObject(result) && result['status'] === 'completed' ? result['result'] : undefined;
  if (!isObject(output) || taskResult(output, null)) return response;
  const span = spanAt(text, ['result', 'result']);
  // A key occurs twice. Then the last value counts, as for most readers.
  if (span === null) return withReadableResult(parseMessage(JSON.stringify(response.value)) as ResponseMessage);
  const read = readable(text.slice(span.start, span.end), output, taskResult);
  const { text: mended, value } = 'text' in read ? read : unreadableResult(read.fault);
  const parsed = { ...response.value, result: { ...(result as JsonObject), result: value } };
  return parseMessage(splice(text, [{ ...span, text: mended }]), parsed) as ResponseMessage;
}

function unreadableResult(fault: string): { readonly text: string; readonly value: object } {
  const text = `The tool answered with a result that cannot be read: ${fault}. Nothing is charged`;
  const value = { isError: true, content: [{ type: 'text', text }] };
  return { text: JSON.stringify(value), value };
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

export function ownQuestion<M extends 'tasks/get' | 'tasks/cancel'>(
  task: Task,
  version: string,
  method: M,
): Pick<TaskQuestion, 'id' | 'idText' | 'text'> & { readonly method: M } {
  const _meta = {
    [META.version]: MODERN,
    [META.capabilities]: { extensions: { [TASKS]: {} } },
    [META.clientInfo]: { name: 'tollgate', version },
  };
  const id = 'look';
  return { method, id, idText: JSON.stringify(id), text: requestText(id, method, { taskId: atServer(task), _meta }) };
}

/** A request about a task, with the task's id at its server. */
interface TaskQuestion {
  readonly method: string;
  readonly id: RequestId;
  readonly idText: string;
  /** The id of the task at its server. */
  readonly taskId: string;
  readonly text: string;
}

interface ServerAnswer {
  readonly response: ResponseMessage;
  readonly status: number;
}

/**
 * Posts a request about a task to its server, and reads the response, which gets the id as the request has it.
 * Notifications before the response are dropped. Rejects with UpstreamFailure.
 */
export async function askServer(
  send: Send,
  question: TaskQuestion,
  bytesMax: number,
  timeoutMs?: number,
): Promise<ServerAnswer> {
  const { method, taskId, text } = question;
  const headers: Record<string, string> = { ...MODERN_POST_HEADERS };
  for (const [name, value] of Object.entries(standardHeaders(method, { taskId }, null)))
    headers[name.toLowerCase()] = value;
  const exchange = send({ method: 'POST', path: '', headers, body: text });
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => exchange.abort(providerFailure('the provider does not answer', null)), timeoutMs);
  try {
    const reply = await exchange.head;
    const { status } = reply;
    await refuseCredentialStatus(reply);
    const response = await firstResponse(reply, bytesMax);
    if (response === null) throw withoutResponse(status);
    const answer = onlyAnswerTo(question, response);
    // An error about a request that the server could not read has no id.
    if (answer === null && (response.id !== null || response.error === undefined))
      throw providerFailure("the id of the provider's response is not the id of the request", status);
    return { response: answer ?? response, status };
  } finally {
    clearTimeout(timer);
  }
}

interface PollTaskDeps extends AskOfTaskDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly onUnseen: (error: Error) => void;
}

/** Timeout of the call. The watch waits for a shorter time. */
const POLL_MS = 20_000;

/** Looks at a task for the gateway itself, so that the gateway notices its end even if no client asks. */
export function createPollTask(deps: PollTaskDeps): TaskPoll {
  return async (task, signal) => {
    let seen: Observation | null = null;
    const startAttempt: McpFreeCall['startAttempt'] = (offer, send) =>
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
