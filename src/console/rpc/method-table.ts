import { type JsonObject, interpretedFields, type InterpretedFieldsAt, isObject, ambiguousKeyAt } from '#wire';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import type { RequestMessage } from '#json-rpc';
import { badParams } from './errors-rpc.ts';
import { type RpcMethod, type Param, paramsOf, paramsWithout, pathOf, type HasRoute } from './method.ts';

const API = '/api/v1';

type Words = Pick<RpcMethod, 'name' | 'summary' | 'open' | 'billed'>;

/** A method for a GET endpoint. Its parameters become the query. */
function page(words: Words, url: string): RpcMethod {
  return {
    ...words,
    route: { verb: 'GET', url: API + url },
    described: 'query',
    answers: 'http',
    toInner: (request) => ({ verb: 'GET', path: API + url + queryOf(paramsOf(request)) }),
  };
}

/**
 * For an endpoint that can also send an unlimited file: refuses the file format, because a JSON-RPC reply is one
 * message.
 */
const withoutFiles = (method: RpcMethod): RpcMethod => ({
  ...method,
  toInner(request) {
    if (paramsOf(request)['format'] === 'csv')
      throw badParams(`${method.name} gives no files over JSON-RPC: GET ${method.route.url}?format=csv`, 'format');
    return method.toInner(request);
  },
});

interface Address {
  /** The path before the name. It ends with a slash. */
  readonly before: string;
  /** The path after the name. Default: none. */
  readonly after?: string;
  /** The path in the reference, if it is another than that of the route. */
  readonly described?: string;
}

/** A method for a GET endpoint with the name of one item in its path. */
function pageOf(words: Words, { before, after = '', described }: Address, param: Param): RpcMethod {
  return {
    ...words,
    route: { verb: 'GET', url: `${API}${before}*` },
    ...(described === undefined ? {} : { describedAt: API + described }),
    params: [param],
    answers: 'http',
    toInner: (request) => ({
      verb: 'GET',
      path: API + before + pathOf(paramsOf(request)[param.name], param.name) + after,
    }),
  };
}

/**
 * A method for a billed POST endpoint. Its parameters become the body, unchanged. Streams are refused, because a
 * JSON-RPC reply is one message.
 */
function post(words: Words, url: string): RpcMethod {
  const path = API + url;
  return {
    ...words,
    billed: true,
    route: { verb: 'POST', url: path },
    described: 'body',
    answers: 'http',
    toInner(request) {
      if (paramsOf(request)['stream'] === true)
        throw badParams(`${words.name} does not stream over JSON-RPC: leave stream out, or POST ${path}`, 'stream');
      return { verb: 'POST', path, body: paramsWithout(request, ['_meta']) };
    },
  };
}

function queryOf(params: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (name === '_meta' || value === null) continue;
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw badParams(`${name} must be a string, a number or a boolean`, name);
    query.append(name, String(value));
  }
  return query.size === 0 ? '' : `?${query.toString()}`;
}

const OBJECT: JsonObject = { type: 'object' };
const TEXT: JsonObject = { type: 'string' };

const NAMING: Readonly<Record<'service' | 'agent', InterpretedFieldsAt>> = {
  service: [[[], interpretedFields(['service'])]],
  agent: [[[], interpretedFields(['agent'])]],
};

/** The message to a JSON-RPC route at `path`, or at the name from `param` below it. */
function toEndpoint(
  request: RequestMessage,
  method: string,
  path: string,
  param: 'service' | 'agent',
  without: readonly string[],
) {
  const params = paramsOf(request);
  const fault = ambiguousKeyAt(params, NAMING[param], 'params.');
  if (fault !== null) throw badParams(fault.message, fault.param);
  const { [param]: name } = params;
  return {
    verb: 'POST' as const,
    path: name === undefined || name === null ? path : `${path}/${pathOf(name, param)}`,
    body: `{"jsonrpc":"2.0","id":${request.idText},"method":${JSON.stringify(method)},"params":${paramsWithout(request, [param, ...without])}}`,
  };
}

const SERVICE: Param = {
  name: 'service',
  description: 'The tool service. Without it, the tools of all services are meant, as `<service>__<tool>`.',
  schema: TEXT,
};

const ENVELOPE = 'io.modelcontextprotocol/protocolVersion';

/** An MCP request without a session. Its whole `_meta` is passed on, including the members for the gateway. */
function mcp(words: Words, params: readonly Param[] = []): RpcMethod {
  return {
    ...words,
    route: { verb: 'POST', url: '/mcp' },
    params: [SERVICE, ...params],
    answers: 'wire',
    toInner(request) {
      const meta = paramsOf(request)['_meta'];
      if (isObject(meta) && Object.hasOwn(meta, ENVELOPE))
        throw badParams(
          `The envelope of an MCP revision is for POST /mcp: leave ${ENVELOPE} out of _meta here`,
          `_meta["${ENVELOPE}"]`,
        );
      return toEndpoint(request, words.name, '/mcp', 'service', []);
    },
  };
}

const AGENT: Param = {
  name: 'agent',
  description: 'The agent. It may be left out if a task names it, or if there is only one agent.',
  schema: TEXT,
};

const NAME: Param = { name: 'name', description: 'The tool.', required: true, schema: TEXT };
const ARGUMENTS: Param = { name: 'arguments', description: "By the tool's input schema.", schema: OBJECT };
const MESSAGE: Param = {
  name: 'message',
  description: 'A2A: `messageId`, `role` and `parts`.',
  required: true,
  schema: OBJECT,
};
const CONFIGURATION: Param = { name: 'configuration', description: 'A2A.', schema: OBJECT };
const TASK_ID: Param = { name: 'id', description: 'The task.', required: true, schema: TEXT };

/** An A2A request of this version. `method`: its name in that version, if it differs. */
function a2a(words: Words, version: '0.3' | '1.0', params: readonly Param[] = [], method = words.name): RpcMethod {
  return {
    ...words,
    route: { verb: 'POST', url: '/a2a' },
    params: [AGENT, ...params],
    answers: 'wire',
    toInner: (request) => ({
      ...toEndpoint(request, method, '/a2a', 'agent', ['_meta']),
      headers: { 'a2a-version': version },
    }),
  };
}

/** All methods that routes of this gateway can answer. A method is offered only if the server has its route. */
const METHODS: readonly RpcMethod[] = [
  page({ name: 'services/list', summary: 'List services of every kind', open: true }, '/services'),
  page({ name: 'models/list', summary: 'List models', open: true }, '/models'),
  page({ name: 'models/count', summary: 'Count models', open: true }, '/models/count'),
  page({ name: 'models/user', summary: 'List what your key may call' }, '/models/user'),
  pageOf(
    { name: 'models/endpoints', summary: 'Show who offers a model', open: true },
    { before: '/models/', after: '/endpoints', described: '/models/{author}/{slug}/endpoints' },
    { name: 'model', description: 'The name of the model.', required: true, schema: TEXT },
  ),
  page({ name: 'agents/list', summary: 'List agents', open: true }, '/agents'),
  pageOf(
    { name: 'agents/get', summary: 'Show an agent', open: true },
    { before: '/agents/' },
    { name: 'agent', description: 'The name of the agent.', required: true, schema: TEXT },
  ),
  page({ name: 'providers/list', summary: 'List providers', open: true }, '/providers'),
  page({ name: 'ping', summary: 'Answers pong', open: true }, '/ping'),

  post({ name: 'chat/completions', summary: 'Create a chat completion' }, '/chat/completions'),
  post({ name: 'responses/create', summary: 'Create a response' }, '/responses'),
  ...KINDS_OF_MODELS.flatMap(
    ([
      ,
      {
        method,
        summary,
        paths: [path],
      },
    ]) => (method === undefined ? [] : [post({ name: method, summary }, path)]),
  ),
  post({ name: 'images/generate', summary: 'Generate images' }, '/image/generate'),
  post({ name: 'images/edit', summary: 'Edit images' }, '/image/edit'),
  post({ name: 'quotes/create', summary: 'Say what a call costs' }, '/quotes'),
  post({ name: 'video/queue', summary: 'Queue a video' }, '/video/queue'),
  post({ name: 'video/retrieve', summary: 'Ask for a video' }, '/video/retrieve'),

  mcp({ name: 'tools/list', summary: 'List tools' }),
  mcp({ name: 'tools/call', summary: 'Call a tool', billed: true }, [NAME, ARGUMENTS]),

  a2a({ name: 'message/send', summary: 'Send a message to an agent (A2A 0.3)', billed: true }, '0.3', [
    MESSAGE,
    CONFIGURATION,
  ]),
  a2a({ name: 'tasks/get', summary: 'Show a task (A2A 0.3)' }, '0.3', [TASK_ID]),
  a2a({ name: 'tasks/cancel', summary: 'Cancel a task (A2A 0.3)' }, '0.3', [TASK_ID]),
  // A2A 0.3 has no method to list tasks.
  a2a({ name: 'tasks/list', summary: 'List tasks (answered as A2A 1.0)' }, '1.0', [], 'ListTasks'),
  a2a({ name: 'SendMessage', summary: 'Send a message to an agent (A2A 1.0)', billed: true }, '1.0', [
    MESSAGE,
    CONFIGURATION,
  ]),
  a2a({ name: 'GetTask', summary: 'Show a task (A2A 1.0)' }, '1.0', [TASK_ID]),
  a2a({ name: 'CancelTask', summary: 'Cancel a task (A2A 1.0)' }, '1.0', [TASK_ID]),
  a2a({ name: 'ListTasks', summary: 'List tasks (A2A 1.0)' }, '1.0'),

  page({ name: 'account/balance', summary: 'Show your balance' }, '/session/balance'),
  page({ name: 'account/credits', summary: 'Show your credits' }, '/credits'),
  page({ name: 'account/key', summary: 'Show the key that you use' }, '/key'),
  withoutFiles(page({ name: 'generations/list', summary: 'List your calls' }, '/generations')),
  page({ name: 'generation/get', summary: 'Show one call and its money' }, '/generation'),
  page({ name: 'activity/list', summary: 'Show your activity' }, '/activity'),

  page({ name: 'analytics/own', summary: 'Show your figures' }, '/analytics/own'),
  page({ name: 'analytics/public', summary: 'Show the figures of the market', open: true }, '/analytics/public'),
  page({ name: 'analytics/services', summary: 'List the figures of services', open: true }, '/analytics/service'),
  pageOf(
    { name: 'analytics/service', summary: 'Show the figures of a service', open: true },
    { before: '/analytics/service/' },
    {
      name: 'name',
      description: 'The primitive and the name, such as `model/demo/chat`.',
      required: true,
      schema: TEXT,
    },
  ),
];

const STREAMING: Readonly<Record<string, string>> = {
  'message/stream': 'POST /a2a/<agent>',
  'tasks/resubscribe': 'POST /a2a/<agent>',
  SendStreamingMessage: 'POST /a2a/<agent>',
  SubscribeToTask: 'POST /a2a/<agent>',
  'subscriptions/listen': 'POST /mcp/<service>',
};

/** The methods whose routes the server has. Call it after all routes are registered. */
export const methodsOf = (hasRoute: HasRoute): readonly RpcMethod[] =>
  METHODS.filter(({ route: { verb, url } }) => hasRoute({ method: verb, url }));

/** The endpoint of a method that streams; null for every other method. */
export const streamedAt = (method: string): string | null =>
  Object.hasOwn(STREAMING, method) ? STREAMING[method]! : null;
