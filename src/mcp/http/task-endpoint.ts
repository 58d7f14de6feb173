import type { ClientAnswer } from '#http';
import { errorText, type RequestMessage, resultText } from '#json-rpc';
import { GatewayError } from '#errors';
import { splice, withMembers, type UpstreamFailure } from '#wire';
import type { Config } from '#config';
import { pinned, type Offer } from '#catalog';
import { type Pipeline, endOnly, type Send } from '#call';
import { ownerOf, type Task, type Tasks } from '#tasks';
import { type McpFreeCall, runFreeCall } from '../request/free-call.ts';
import { readOwnRequest } from '../wire/own-messages.ts';
import { ERROR, MODERN, modernStatusOf } from '../wire/revisions.ts';
import { ownMeta, traceOf, type RequestContext, type StatelessRequest } from '../call/stateless.ts';
import { atServer, askServer, askOfTask, type AskOfTaskDeps, type ShownTask } from '../tasks/ask-of-task.ts';
import { declaresTasks, TASKS } from '../request/extension.ts';
import { isEnd, shownTtlMs, showTask, type TaskCost } from '../tasks/server-task.ts';
import { freeEnd, tooLargeText } from '../request/ending.ts';
import type { McpResponse } from '../request/mcp-request.ts';

interface TaskEndpointDeps extends TaskAdapterDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly tasks: Pick<Tasks, 'begin' | 'saw' | 'findAll'>;
  readonly receipts: Config['billing']['receipts'];
}

export interface TaskAddress {
  includes(service: string): boolean;
  toClient(text: string, service: string): string;
}

/**
 * Answers requests about tasks. Each goes to the provider that began the task. A task of another owner is not found.
 * Throws GatewayError.
 */
type TaskEndpoint = (
  address: TaskAddress,
  request: StatelessRequest,
  context: RequestContext,
  answer: ClientAnswer,
) => Promise<void>;

export function createTaskEndpoint(deps: TaskEndpointDeps): TaskEndpoint {
  return async (address, { message: request, capabilities }, context, answer) => {
    const { idText } = request;
    if (!declaresTasks(capabilities)) return answer.end(undeclared(request), modernStatusOf(ERROR.missingCapability));
    const taskId = request.params?.['taskId'];
    if (typeof taskId !== 'string')
      throw new GatewayError('invalid_request', 'params.taskId must be the id of a task', { param: 'params.taskId' });
    const own = ownMeta(request, context.headers, deps.receipts);
    const tasks = await deps.tasks.findAll('tool', taskId, ownerOf(context.caller));
    const task = tasks.find(({ service }) => address.includes(service));
    if (!task || (!task.live && !isEnd(task.state))) {
      const { text, status } = notFound(
        idText,
        task ? 'The task was given up because its time was over. Nothing is charged for it' : undefined,
      );
      return answer.end(text, status);
    }
    // The operator has ended it.
    if (task.snapshot !== null) {
      const { text, status } = shownEnded(request, task);
      return answer.end(text, status);
    }
    const call = {
      caller: context.caller,
      requestId: context.requestId,
      target: pinned(task.offerId),
      method: request.method,
      startAttempt: taskAttempt(deps, { message: forServer(own.message, task), wantsReceipt: own.wantsReceipt }, task),
      traceparent: traceOf(context.headers, request),
      facts: () => ({ 'mcp.protocol.version': MODERN }),
    };
    const response = await runFreeCall(deps.pipeline, call, context.gone);
    if (response === null) return answer.close();
    answer.end(address.toClient(response.text, task.service), response.status);
  };
}

function forServer({ text, members }: RequestMessage, task: Task): RequestMessage {
  const taskId = JSON.stringify(atServer(task));
  return readOwnRequest(splice(text, [withMembers(text, members.get('params')!, { taskId })]));
}

function undeclared({ idText, method }: RequestMessage): string {
  const requiredCapabilities = { extensions: { [TASKS]: {} } };
  const message = `To use ${method}, declare the extension ${TASKS} in the capabilities of the request`;
  return errorText(idText, { code: ERROR.missingCapability, message, data: { requiredCapabilities } });
}

interface TaskAdapterDeps extends AskOfTaskDeps {
  readonly tasks: Pick<Tasks, 'begin' | 'saw'>;
  /** The signed receipt of a settled call; null for a call that was not charged. */
  readonly receiptOf: (callId: string) => Promise<string | null>;
}

interface RequestToTask {
  readonly message: RequestMessage;
  readonly wantsReceipt: boolean;
}

/**
 * Passes a client's request about its own task to the task's server. If the task has ended, it is settled before the
 * client gets the answer.
 */
function taskAttempt(deps: TaskAdapterDeps, request: RequestToTask, task: Task): McpFreeCall['startAttempt'] {
  return (offer, send) =>
    endOnly(async () => {
      const response =
        request.message.method === 'tasks/get'
          ? await taskReply(deps, request, task, offer, send)
          : await tellServer(deps, request.message, task, offer, send);
      return freeEnd(response);
    });
}

async function taskReply(
  deps: TaskAdapterDeps,
  { message, wantsReceipt }: RequestToTask,
  task: Task,
  offer: Offer,
  send: Send,
): Promise<McpResponse> {
  const { idText } = message;
  const seen = await askOfTask(deps, task, offer, send, message);
  const noted = seen.observation === null ? null : await deps.tasks.saw(task, seen.observation);
  if (seen.kind === 'error') return refusal(idText, seen);
  if (noted === null) return notFound(idText);
  const { live, state } = noted.task;
  // The task ended with another state here, so what the server shows now was not paid.
  if (!live && state !== seen.observation.state)
    return notFound(idText, `The task has ended as ${state}. Later messages of its server are not forwarded`);
  const [settled] = noted.settled;
  const receipt =
    settled && wantsReceipt && settled.settlement.charged > 0n ? await deps.receiptOf(settled.callId) : null;
  const cost: TaskCost | null = settled ? { ...settled, receipt } : null;
  if (seen.kind === 'large')
    return { text: showTask(tooLargeAnswer(idText, task, seen.failure), task.taskId, null, cost), status: 200 };
  const ttlMs = live ? shownTtlMs(seen.serverTask.ttlMs, deps.ttlMs) : null;
  return { text: showTask(seen.response.text, task.taskId, ttlMs, cost), status: 200 };
}

/**
 * Passes on a request other than `tasks/get`. After a cancellation, the gateway looks at the task once. If the task has
 * ended, its lock is settled at once. The client does not see this look.
 */
async function tellServer(
  deps: TaskAdapterDeps,
  message: RequestMessage,
  task: Task,
  offer: Offer,
  send: Send,
): Promise<McpResponse> {
  const { id, idText, method, text } = message;
  const { response, status } = await askServer(
    send,
    { method, id, idText, taskId: atServer(task), text },
    deps.replyBytesMax,
  );
  if (response.error !== undefined) return refusal(idText, { response, status });
  if (method === 'tasks/cancel' && task.live) {
    const seen = await askOfTask(deps, task, offer, send, undefined, POLL_MS).catch(() => null);
    if (seen?.observation) await deps.tasks.saw(task, seen.observation);
  }
  return { text: response.text, status: 200 };
}

/** Short, because the answer to a cancellation waits for this look. */
const POLL_MS = 2_000;

function refusal(
  idText: string,
  { response: { error }, status }: Pick<ShownTask & { readonly kind: 'error' }, 'response' | 'status'>,
): McpResponse {
  return { text: errorText(idText, error!), status: status === 200 ? modernStatusOf(error!.code) : status };
}

/** The answer to a request about a task that the operator has ended. */
function shownEnded({ idText, method }: RequestMessage, { snapshot, state }: Task): McpResponse {
  if (method === 'tasks/get') return { text: resultText(idText, snapshot!), status: 200 };
  return notFound(idText, `The task has ended as ${state}`);
}

function notFound(idText: string, why = 'Task not found'): McpResponse {
  return {
    text: errorText(idText, { code: ERROR.invalidParams, message: why }),
    status: modernStatusOf(ERROR.invalidParams),
  };
}

/** The answer for a task whose result is larger than the gateway accepts. The tool has done its work. */
function tooLargeAnswer(idText: string, { taskId, createdAt, updatedAt }: Task, failure: UpstreamFailure): string {
  const task = {
    resultType: 'complete',
    taskId,
    status: 'completed',
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: null,
    result: { isError: true, content: [{ type: 'text', text: tooLargeText(failure) }] },
  };
  return resultText(idText, JSON.stringify(task));
}
