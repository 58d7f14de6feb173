import { page, pageOf, post, withoutFiles } from './http-methods.ts';
import type { HasRoute, Method } from './method.ts';
import { a2a, ARGUMENTS, CONFIGURATION, mcp, MESSAGE, NAME, TASK_ID } from './wire-methods.ts';

const TEXT = { type: 'string' };

/** All methods that routes of this gateway can answer. A method is offered only if the server has its route. */
const METHODS: readonly Method[] = [
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
  post({ name: 'embeddings/create', summary: 'Create embeddings' }, '/embeddings'),
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
      description: 'The primitive and the name, such as `model/demo/sage`.',
      required: true,
      schema: TEXT,
    },
  ),
];

/** Methods that answer with a stream, with the endpoints that serve them. */
const STREAMING: Readonly<Record<string, string>> = {
  'message/stream': 'POST /a2a/<agent>',
  'tasks/resubscribe': 'POST /a2a/<agent>',
  SendStreamingMessage: 'POST /a2a/<agent>',
  SubscribeToTask: 'POST /a2a/<agent>',
  'subscriptions/listen': 'POST /mcp/<service>',
};

/** The methods whose routes the server has. Call it after all routes are registered. */
export const methodsOf = (hasRoute: HasRoute): readonly Method[] =>
  METHODS.filter(({ route: { verb, url } }) => hasRoute({ method: verb, url }));

/** The endpoint of a method that streams; null for every other method. */
export const streamedAt = (method: string): string | null =>
  Object.hasOwn(STREAMING, method) ? STREAMING[method]! : null;
