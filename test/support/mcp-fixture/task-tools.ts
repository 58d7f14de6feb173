import { randomUUID } from 'node:crypto';
import { fromJsonSchema, type McpServer } from '@modelcontextprotocol/server';
import { decodeHeaderValue } from '../../../src/mcp/wire/param-headers.ts';
import { says } from './content.ts';
import { askFor } from './questions.ts';

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

type Fields = Readonly<Record<string, unknown>>;

/** A task of the fixture, in the form of `tasks/get`. */
interface FixtureTask {
  readonly taskId: string;
  readonly createdAt: string;
  lastUpdatedAt: string;
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  result?: unknown;
  error?: unknown;
  inputRequests?: Record<string, unknown>;
  /** Called when every question is answered. */
  answered?: (answers: Record<string, unknown>) => void;
  readonly answers: Record<string, unknown>;
  timer?: NodeJS.Timeout;
}

/** Tools that answer with a task if the client supports tasks. `required` ones can't be called in another way. */
const TOOLS: Readonly<
  Record<
    string,
    { readonly required?: true; readonly schema: object; readonly run: (task: FixtureTask, args: Fields) => void }
  >
> = {
  slow_compute: {
    schema: { type: 'object', properties: { seconds: { type: 'number' }, label: { type: 'string' } } },
    run: (task, args) =>
      later(task, Number(args['seconds'] ?? 0) * 1_000, {
        status: 'completed',
        result: says(`computed ${String(args['label'])}`),
      }),
  },
  failing_job: {
    required: true,
    schema: { type: 'object' },
    run: (task) => later(task, 100, { status: 'completed', result: { ...says('the job failed'), isError: true } }),
  },
  protocol_error_job: {
    schema: { type: 'object' },
    run: (task) => later(task, 100, { status: 'failed', error: { code: -32_603, message: 'the job broke down' } }),
  },
  confirm_delete: {
    schema: { type: 'object', properties: { filename: { type: 'string' } } },
    run: (task, args) =>
      ask(task, ['confirm'], () =>
        end(task, { status: 'completed', result: says(`deleted ${String(args['filename'])}`) }),
      ),
  },
  multi_input: {
    schema: { type: 'object' },
    run: (task) =>
      ask(task, ['first', 'second'], () => end(task, { status: 'completed', result: says('both answers came') })),
  },
  test_tool_with_task: {
    required: true,
    schema: { type: 'object' },
    run: (task, { name }) => later(task, 50, { status: 'completed', result: says(`Hello, ${String(name)}!`) }),
  },
};

function end(task: FixtureTask, how: Partial<FixtureTask>): void {
  if (['completed', 'failed', 'cancelled'].includes(task.status)) return;
  clearTimeout(task.timer);
  delete task.inputRequests;
  Object.assign(task, how, { lastUpdatedAt: new Date().toISOString() });
}

function later(task: FixtureTask, ms: number, how: Partial<FixtureTask>): void {
  task.timer = setTimeout(end, ms, task, how).unref();
}

function ask(task: FixtureTask, keys: readonly string[], answered: () => void): void {
  task.status = 'input_required';
  task.inputRequests = Object.fromEntries(keys.map((key) => [key, askFor(`What is ${key}?`, 'confirm', 'boolean')]));
  task.answered = answered;
}

export interface FixtureTasks {
  /** Adds the tools to an SDK server, which runs them for clients that don't support tasks. */
  readonly addTo: (server: McpServer) => void;
  /** Answers requests about tasks. Resolves with null for every other request. */
  readonly answer: (request: Request) => Promise<Response | null>;
}

/** The tasks extension, which the SDK doesn't have: tasks in memory, and tools that start them. */
export function createFixtureTasks(): FixtureTasks {
  const tasks = new Map<string, FixtureTask>();

  const begin = (tool: string, args: Fields): Fields => {
    const at = new Date().toISOString();
    const task: FixtureTask = {
      taskId: randomUUID(),
      createdAt: at,
      lastUpdatedAt: at,
      status: 'working',
      answers: {},
    };
    tasks.set(task.taskId, task);
    TOOLS[tool]!.run(task, args);
    const { inputRequests: _requests, ...created } = shown(task);
    return { ...created, resultType: 'task', status: 'working' };
  };

  const call = (params: Fields): Fields | null => {
    const {
      name,
      arguments: args = {},
      inputResponses,
    } = params as { name: string; arguments?: Fields; inputResponses?: Record<string, Fields> };
    if (!Object.hasOwn(TOOLS, name)) return null;
    if (!declares(params)) return TOOLS[name]!.required ? MISSING : null;
    if (name !== 'test_tool_with_task') return { result: begin(name, args) };
    const told = inputResponses?.['user_name']?.['content'] as Fields | undefined;
    if (told) return { result: begin(name, { name: told['name'] }) };
    return {
      result: {
        resultType: 'input_required',
        inputRequests: { user_name: askFor('What is your name?', 'name') },
        requestState: 'asked',
      },
    };
  };

  const about = (method: string, params: Fields): Fields => {
    if (!declares(params)) return MISSING;
    const task = tasks.get(String(params['taskId']));
    if (!task) return { error: { code: -32_602, message: 'Unknown task' } };
    if (method === 'tasks/get') return { result: { ...shown(task), resultType: 'complete' } };
    if (method === 'tasks/cancel') end(task, { status: 'cancelled' });
    if (method === 'tasks/update') update(task, params['inputResponses'] as Fields);
    return { result: { resultType: 'complete' } };
  };

  return {
    addTo(server) {
      server.registerTool(
        'greet',
        {
          description: 'Greets',
          inputSchema: fromJsonSchema<Fields>({ type: 'object', properties: { name: { type: 'string' } } }),
        },
        (input) => says(`Hello, ${String(input['name'])}!`),
      );
      for (const [name, { schema }] of Object.entries(TOOLS))
        server.registerTool(
          name,
          { description: 'May take a while', inputSchema: fromJsonSchema<Fields>(schema as { type: 'object' }) },
          () => says('done at once'),
        );
    },
    async answer(request) {
      if (request.method !== 'POST') return null;
      const {
        id,
        method,
        params = {},
      } = (await request.clone().json()) as { id?: unknown; method?: string; params?: Fields };
      if (!['tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel'].includes(method ?? '')) return null;
      const name = decodeHeaderValue(request.headers.get('mcp-name') ?? '');
      if (method === 'tools/call' && (name !== params['name'] || request.headers.get('mcp-method') !== method))
        return null;
      if (method !== 'tools/call' && name !== params['taskId'])
        return Response.json(
          { jsonrpc: '2.0', id, error: { code: -32_020, message: 'Mcp-Name differs' } },
          { status: 400 },
        );
      const said = method === 'tools/call' ? call(params) : about(method!, params);
      return said && Response.json({ jsonrpc: '2.0', id, ...said }, { status: said === MISSING ? 400 : 200 });
    },
  };
}

const MISSING: Fields = {
  error: {
    code: -32_021,
    message: 'The client takes no tasks',
    data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
  },
};

function declares(params: Fields): boolean {
  const meta = params['_meta'] as Record<string, { readonly extensions?: Fields } | undefined> | undefined;
  return meta?.['io.modelcontextprotocol/clientCapabilities']?.extensions?.[TASKS_EXTENSION] !== undefined;
}

function shown({ taskId, createdAt, lastUpdatedAt, status, result, error, inputRequests }: FixtureTask): Fields {
  return {
    taskId,
    createdAt,
    lastUpdatedAt,
    status,
    ttlMs: 3_600_000,
    pollIntervalMs: 100,
    result,
    error,
    inputRequests,
  };
}

function update(task: FixtureTask, responses: Fields): void {
  for (const key of Object.keys(responses)) delete task.inputRequests?.[key];
  if (task.inputRequests && Object.keys(task.inputRequests).length === 0) task.answered?.(task.answers);
}
