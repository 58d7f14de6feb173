import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { AgentCard, TaskState, type CancelTaskRequest, type SendMessageRequest } from '@a2a-js/sdk';
import { isLegacyJsonRpcMethod } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { RequestMalformedError, TaskNotCancelableError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import { DefaultRequestHandler, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { croupierCard } from './croupier-card.ts';
import { createCroupierExecutor } from './croupier-executor.ts';
import { CroupierTasks } from './croupier-tasks.ts';
import { isObject } from './request.ts';
import type { Surroundings } from './tools.ts';

/** An A2A agent. Answers one POST of JSON-RPC, of A2A 0.3 or 1.0. */
export type Croupier = (text: string, headers: IncomingHttpHeaders, response: ServerResponse) => Promise<void>;

const ID_MAX = 256;
const VERSIONS: readonly unknown[] = [undefined, '', '0.3', '0.3.0', '1.0'];

export function createCroupier(around: Surroundings): Croupier {
  const tasks = new CroupierTasks();
  const handler = new CroupierHandler(
    AgentCard.fromJSON(croupierCard('')),
    tasks,
    createCroupierExecutor(around, tasks),
    tasks,
  );
  const [current, legacy] = [new JsonRpcTransportHandler(handler), new LegacyJsonRpcTransportHandler(handler)];

  return async (text, headers, response) => {
    const request = parse(text);
    if (request === undefined) return refuse(response, null, { code: -32700, message: 'The body is not JSON' });
    if (!isObject(request) || (typeof request['id'] !== 'string' && !Number.isSafeInteger(request['id'])))
      return refuse(response, null, {
        code: -32600,
        message: 'The body must be one JSON-RPC 2.0 request with a text or a whole number as its id',
      });
    if (!VERSIONS.includes(headers['a2a-version']))
      return refuse(response, request['id'], { code: -32009, message: 'A2A 0.3 and 1.0 are spoken here' });
    // The method tells the version, because no method has the same name in both versions.
    const isLegacy = isLegacyJsonRpcMethod(request['method']);
    const context = new ServerCallContext({ requestedVersion: isLegacy ? '0.3' : '1.0' });
    const reply = await (isLegacy ? legacy : current).handle(request, context);
    if (!(Symbol.asyncIterator in reply)) return sendJson(response, reply);
    try {
      await stream(reply, response);
    } catch (error) {
      const told = isLegacy
        ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
        : JsonRpcTransportHandler.mapToJSONRPCError(error);
      if (response.headersSent) response.destroy();
      else refuse(response, request['id'], told);
    }
  };
}

/**
 * Refuses requests that the SDK would accept: ids of any length, messages for a task that is running or finished, and a
 * second cancel of the same task.
 */
class CroupierHandler extends DefaultRequestHandler {
  readonly #tasks: CroupierTasks;
  constructor(...given: [AgentCard, CroupierTasks, ReturnType<typeof createCroupierExecutor>, CroupierTasks]) {
    super(...given);
    this.#tasks = given[1];
  }

  override async sendMessage(params: SendMessageRequest, context: ServerCallContext) {
    return super.sendMessage(this.#check(params), context);
  }

  override async *sendMessageStream(params: SendMessageRequest, context: ServerCallContext) {
    yield* super.sendMessageStream(this.#check(params), context);
  }

  override async cancelTask(params: CancelTaskRequest, context: ServerCallContext) {
    if (this.#tasks.find(params.id)?.status?.state === TaskState.TASK_STATE_CANCELED)
      throw new TaskNotCancelableError('The task is canceled');
    return super.cancelTask(params, context);
  }

  #check(params: SendMessageRequest): SendMessageRequest {
    const { message } = params;
    if (!message) throw new RequestMalformedError('message is missing');
    const { parts, taskId, contextId } = message;
    if (parts.length === 0) throw new RequestMalformedError('message.parts must be an array of at least one part');
    if (taskId.length > ID_MAX || contextId.length > ID_MAX)
      throw new RequestMalformedError(`message.taskId and message.contextId must have at most ${ID_MAX} characters`);
    const state = this.#tasks.find(taskId)?.status?.state;
    if (state !== undefined && state !== TaskState.TASK_STATE_INPUT_REQUIRED)
      throw new UnsupportedOperationError(
        `The task is ${TaskState[state].slice('TASK_STATE_'.length).toLowerCase()} and takes no message now`,
      );
    // Without this, the SDK would write a log line for each referenced task that it doesn't find.
    return { ...params, message: { ...message, referenceTaskIds: [] } };
  }
}

/**
 * Writes the events as a stream. If the client leaves, the events are still read to the end, because the SDK saves the
 * task only while they are read. The events are few and small.
 */
async function stream(events: AsyncIterable<object>, response: ServerResponse): Promise<void> {
  for await (const event of events) {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    if (!response.destroyed) response.write(`data: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const refuse = (response: ServerResponse, id: unknown, error: object) =>
  sendJson(response, { jsonrpc: '2.0', id, error });

/**
 * Sends status 200 even for errors, because clients of both versions read a JSON-RPC error only from a 200 response.
 */
function sendJson(response: ServerResponse, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}
