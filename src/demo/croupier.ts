import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createGame } from './croupier-game.ts';
import { readRun } from './croupier-run.ts';
import { createCroupierTasks, isOver, type CroupierTasks, type Task } from './croupier-tasks.ts';
import { readMethod, writeEvent, writeTask, type WireVersion } from './croupier-wire.ts';
import { isObject } from './request.ts';
import type { Surroundings } from './tools.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** An A2A agent: answers one POST of JSON-RPC, of version 0.3 or 1.0. */
export type Croupier = (text: string, headers: IncomingHttpHeaders, response: ServerResponse) => Promise<void>;

class WireError extends Error {
  override readonly name = 'WireError';
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  taskNotFound: -32001,
  taskNotCancelable: -32002,
  noPush: -32003,
  unsupported: -32004,
  version: -32009,
} as const;

const ID_MAX = 256;

export function createCroupier(around: Surroundings): Croupier {
  const tasks = createCroupierTasks({ game: createGame(around), now: around.now });

  return async (text, headers, response) => {
    let id: unknown = null;
    try {
      const request = parse(text);
      if (typeof request['id'] === 'string' || Number.isSafeInteger(request['id'])) id = request['id'];
      else throw new WireError(ERROR.invalidRequest, 'The id must be a text or a whole number');
      await answer(tasks, request, headers, id, response);
    } catch (error) {
      const { code, message } = error instanceof WireError ? error : new WireError(ERROR.internal, 'The croupier failed');
      if (response.headersSent) response.destroy();
      else sendJson(response, { jsonrpc: '2.0', id, error: { code, message } });
    }
  };
}

async function answer(tasks: CroupierTasks, request: JsonObject, headers: IncomingHttpHeaders, id: unknown, response: ServerResponse): Promise<void> {
  const said = headers['a2a-version'] ?? '';
  if (!['', '0.3', '0.3.0', '1.0'].includes(String(said))) throw new WireError(ERROR.version, 'A2A 0.3 and 1.0 are spoken here');
  const method = readMethod(request['method']);
  if (method === null) throw new WireError(ERROR.methodNotFound, 'There is no such method');
  const { params } = request;
  if (!isObject(params)) throw new WireError(ERROR.invalidParams, 'params must be an object');
  const { version, operation } = method;
  const result = (value: JsonObject) => sendJson(response, { jsonrpc: '2.0', id, result: value });
  switch (operation) {
    case 'send': {
      const task = begin(tasks, params);
      if (waits(version, params)) for await (const _event of tasks.watch(task.id));
      return result(writeTask(version, tasks.find(task.id) ?? task, true));
    }
    case 'stream':
      return stream(tasks, begin(tasks, params), version, id, response);
    case 'get':
      return result(writeTask(version, find(tasks, params), false));
    case 'cancel': {
      const task = find(tasks, params);
      if (!tasks.cancel(task.id)) throw new WireError(ERROR.taskNotCancelable, `The task is ${task.state}`);
      return result(writeTask(version, find(tasks, params), false));
    }
    case 'subscribe': {
      const task = find(tasks, params);
      if (isOver(task)) throw new WireError(ERROR.unsupported, `The task is ${task.state}: nothing more will be told of it`);
      return stream(tasks, task, version, id, response);
    }
    case 'push':
      throw new WireError(ERROR.noPush, 'The croupier sends no push notifications');
    case 'other':
      throw new WireError(ERROR.unsupported, 'The croupier has neither lists of tasks nor another card');
  }
}

/** The task first, then what happens to it until it is over, or asks something. A client that leaves misses the rest; the task goes on. */
async function stream(tasks: CroupierTasks, task: Task, version: WireVersion, id: unknown, response: ServerResponse): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const write = async (result: JsonObject) => {
    if (!response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)) await once(response, 'drain', { signal: left.signal });
  };
  const events = tasks.watch(task.id);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  try {
    await write(writeTask(version, task, true));
    if (!isOver(task)) for await (const event of events) await write(writeEvent(version, event));
    response.end();
  } catch (error) {
    if (!left.signal.aborted) throw error;
  }
}

function begin(tasks: CroupierTasks, { message }: JsonObject): Task {
  if (!isObject(message)) throw new WireError(ERROR.invalidParams, 'message must be an object');
  const { parts } = message;
  if (!Array.isArray(parts) || parts.length === 0) throw new WireError(ERROR.invalidParams, 'message.parts must be an array of at least one part');
  if (idOf(message, 'messageId') === null) throw new WireError(ERROR.invalidParams, 'message.messageId is missing');
  const text = parts.flatMap((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n');
  const taskId = idOf(message, 'taskId');
  const known = taskId === null ? null : tasks.find(taskId);
  if (taskId !== null && known === null) throw new WireError(ERROR.taskNotFound, 'Task not found');
  const task = tasks.play({ taskId, contextId: idOf(message, 'contextId'), text, run: readRun(message['metadata']) });
  if (task === null) throw new WireError(ERROR.unsupported, `The task is ${known!.state} and takes no message now`);
  return task;
}

function find(tasks: CroupierTasks, params: JsonObject): Task {
  const task = tasks.find(String(params['id']));
  if (task === null) throw new WireError(ERROR.taskNotFound, 'Task not found');
  return task;
}

/** What is not said counts as yes. */
function waits(version: WireVersion, { configuration }: JsonObject): boolean {
  if (!isObject(configuration)) return true;
  return version === '1.0' ? configuration['returnImmediately'] !== true : configuration['blocking'] !== false;
}

function idOf(message: JsonObject, name: string): string | null {
  const value = message[name];
  return typeof value === 'string' && value !== '' && value.length <= ID_MAX ? value : null;
}

function parse(text: string): JsonObject {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw new WireError(ERROR.parse, 'The body is not JSON');
  }
  if (isObject(message) && message['jsonrpc'] === '2.0') return message;
  throw new WireError(ERROR.invalidRequest, 'The body is no JSON-RPC 2.0 request');
}

/** Clients of both versions read an error from a reply of 200. */
function sendJson(response: ServerResponse, body: JsonObject): void {
  const text = JSON.stringify(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}
