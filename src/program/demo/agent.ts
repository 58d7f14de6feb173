import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import {
  AgentCard,
  TaskState,
  type CancelTaskRequest,
  type SendMessageRequest,
  Role,
  type Part,
  type TaskStatus,
  type ListTasksResponse,
  type Task,
} from '@a2a-js/sdk';
import { isLegacyJsonRpcMethod } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { RequestMalformedError, TaskNotCancelableError, UnsupportedOperationError } from '@a2a-js/sdk/errors';
import {
  DefaultRequestHandler,
  JsonRpcTransportHandler,
  ServerCallContext,
  AgentEvent,
  type AgentExecutor,
  DefaultExecutionEventBus,
  type ExecutionEventBus,
  type ExecutionEventBusManager,
  type TaskStore,
} from '@a2a-js/sdk/server';
import { isObject } from './request.ts';
import type { Surroundings } from './tools.ts';
import { createGame, type GamePart, type GameStep, readRun } from './dice-game.ts';

export interface DemoAgent {
  /** The agent's card, with this address for JSON-RPC posts. */
  readonly card: (url: string) => object;
  /** Answers one POST of JSON-RPC, of A2A 0.3 or 1.0. */
  readonly answer: (text: string, headers: IncomingHttpHeaders, response: ServerResponse) => Promise<void>;
}

const ID_MAX = 256;
const VERSIONS: readonly unknown[] = [undefined, '', '0.3', '0.3.0', '1.0'];

export function createDemoAgent(around: Surroundings): DemoAgent {
  const tasks = new AgentTasks();
  const handler = new AgentHandler(AgentCard.fromJSON(agentCard('')), tasks, createAgentExecutor(around, tasks), tasks);
  const [current, legacy] = [new JsonRpcTransportHandler(handler), new LegacyJsonRpcTransportHandler(handler)];

  const answer: DemoAgent['answer'] = async (text, headers, response) => {
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
      const rpcError = isLegacy
        ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
        : JsonRpcTransportHandler.mapToJSONRPCError(error);
      if (response.headersSent) response.destroy();
      else refuse(response, request['id'], rpcError);
    }
  };
  return { card: agentCard, answer };
}

/**
 * Refuses requests that the SDK would accept: ids of any length, messages for a task that is running or finished, and a
 * second cancel of the same task.
 */
class AgentHandler extends DefaultRequestHandler {
  readonly #tasks: AgentTasks;
  constructor(...args: [AgentCard, AgentTasks, ReturnType<typeof createAgentExecutor>, AgentTasks]) {
    super(...args);
    this.#tasks = args[1];
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

const STATES = {
  completed: TaskState.TASK_STATE_COMPLETED,
  rejected: TaskState.TASK_STATE_REJECTED,
  'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
} as const;

/** Plays the game for each message and publishes its steps as A2A events. */
function createAgentExecutor(around: Surroundings, tasks: AgentTasks): AgentExecutor {
  const game = createGame(around);
  /** Ids of the running tasks. A canceled task is removed, so that its later steps are not published. */
  const playing = new Set<string>();

  const statusOf = (taskId: string, contextId: string, state: TaskState, words: string | null): TaskStatus => {
    const about = {
      messageId: randomUUID(),
      taskId,
      contextId,
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    const message = words === null ? undefined : { ...about, role: Role.ROLE_AGENT, parts: [partOf({ text: words })] };
    return { state, message, timestamp: new Date(around.now()).toISOString() };
  };
  const update = (taskId: string, contextId: string, state: TaskState, words: string | null) =>
    AgentEvent.statusUpdate({
      taskId,
      contextId,
      status: statusOf(taskId, contextId, state, words),
      metadata: undefined,
    });

  return {
    async execute({ taskId, contextId, userMessage, task }, bus) {
      playing.add(taskId);
      const state = task ? TaskState.TASK_STATE_WORKING : TaskState.TASK_STATE_SUBMITTED;
      const begun = task ?? { id: taskId, contextId, artifacts: [], metadata: undefined };
      bus.publish(AgentEvent.task({ ...begun, history: [], status: statusOf(taskId, contextId, state, null) }));
      let append = false;
      const tell = (step: GameStep) => {
        if (step.kind === 'working')
          return bus.publish(update(taskId, contextId, TaskState.TASK_STATE_WORKING, step.words));
        if (step.kind === 'over') return bus.publish(update(taskId, contextId, STATES[step.state], step.words));
        const artifact = {
          artifactId: 'roll',
          name: 'roll',
          description: '',
          parts: step.parts.map(partOf),
          metadata: undefined,
          extensions: [],
        };
        bus.publish(
          AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: step.last, metadata: undefined }),
        );
        append = true;
      };
      try {
        const text = userMessage.parts
          .flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []))
          .join('\n');
        for await (const step of game(text, readRun(userMessage.metadata))) {
          if (!playing.has(taskId)) return;
          tell(step);
        }
      } catch {
        if (playing.has(taskId))
          bus.publish(update(taskId, contextId, TaskState.TASK_STATE_FAILED, 'The agent dropped the dice.'));
      } finally {
        playing.delete(taskId);
      }
    },

    async cancelTask(taskId, bus) {
      playing.delete(taskId);
      bus.publish(update(taskId, tasks.find(taskId)?.contextId ?? '', TaskState.TASK_STATE_CANCELED, null));
      tasks.cleanupByTaskId(taskId);
    },
  };
}

function partOf(part: GamePart): Part {
  const rest = { metadata: undefined, filename: '' };
  return 'text' in part
    ? { ...rest, content: { $case: 'text', value: part.text }, mediaType: '' }
    : { ...rest, content: { $case: 'data', value: part.data }, mediaType: 'application/json' };
}

/** Above this number of tasks, the oldest tasks that aren't running are deleted. */
const TASKS_MAX = 1_000;
const ACTIVE: ReadonlySet<TaskState | undefined> = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
]);

/** The agent's tasks and their event buses, in memory. The SDK's own stores would keep every task forever. */
class AgentTasks implements TaskStore, ExecutionEventBusManager {
  readonly #tasks = new Map<string, Task>();
  readonly #buses = new Map<string, ExecutionEventBus>();

  find(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  async load(id: string): Promise<Task | undefined> {
    return structuredClone(this.#tasks.get(id));
  }

  async save(task: Task): Promise<void> {
    // The history is neither stored nor sent back, because a message may be large and contains the run token. The
    // history is cleared in this very object because the SDK answers with it.
    task.history = [];
    this.#tasks.set(task.id, structuredClone(task));
    for (const [id, old] of this.#tasks) {
      if (this.#tasks.size <= TASKS_MAX) break;
      if (ACTIVE.has(old.status?.state)) continue;
      this.#tasks.delete(id);
      this.cleanupByTaskId(id);
    }
  }

  async list(): Promise<ListTasksResponse> {
    throw new UnsupportedOperationError('The agent has no lists of tasks');
  }

  createOrGetByTaskId(id: string): ExecutionEventBus {
    const bus = this.#buses.get(id) ?? new DefaultExecutionEventBus();
    this.#buses.set(id, bus);
    return bus;
  }

  getByTaskId(id: string): ExecutionEventBus | undefined {
    return this.#buses.get(id);
  }

  cleanupByTaskId(id: string): void {
    this.#buses.get(id)?.removeAllListeners();
    this.#buses.delete(id);
  }
}

/**
 * The agent card of the demo's agent. Clients of A2A 0.3 and of 1.0 can both read it. `url` is the address for
 * JSON-RPC posts.
 */
function agentCard(url: string): object {
  return {
    name: 'Demo: Agent',
    description:
      'Rolls dice and comments on them. Given a run token, it has demo/tools roll and asks demo/chat for the comment.',
    version: '1.0.0',
    supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    protocolVersion: '0.3.0',
    url,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'roll',
        name: 'Roll dice',
        description:
          'Rolls dice as players write them, and says how lucky that was. Asks which dice where none are named.',
        tags: ['dice', 'demo'],
        examples: ['Roll 2d6', 'd20+3, please'],
      },
    ],
  };
}
