import {
  callTool,
  modernPost,
  type A2aHandler,
  type PostOptions,
  type Reply,
  type Tree,
} from '../calls/modern-post.ts';

const DECLARED = {
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

type Options = PostOptions & { readonly params?: object };

const declared = (options: Options): Options => ({ ...options, meta: { ...DECLARED, ...options.meta } });

/** Calls a tool as a client that takes tasks. */
export const callDeclared = (
  door: A2aHandler,
  service: string,
  args: object = {},
  options: Options = {},
  tool = 'job',
): Promise<Reply> => callTool(door, service, tool, args, declared(options));

/** Begins a task: the id that the client is given, and that of its call. */
export async function beginTask(
  door: A2aHandler,
  service: string,
  args: object = {},
  options: Options = {},
): Promise<{ readonly id: string; readonly call: string; readonly created: Tree }> {
  const { message } = await callDeclared(door, service, args, options);
  if (message.error) throw new Error(`no task was begun: ${JSON.stringify(message.error)}`);
  const created = message.result;
  const generation = created['_meta']!['tollgate/generation'] as unknown as { readonly id: string };
  return { id: created['taskId'] as unknown as string, call: generation.id, created };
}

/** Asks for a task, or something of it, at an address: that of a service, or `/mcp`. */
export function askTask(
  door: A2aHandler,
  path: string,
  method: string,
  taskId: string,
  params: object = {},
  options: Options = {},
): Promise<Reply> {
  const encoded = /^[\x21-\x7e]+$/.test(taskId) ? taskId : `=?base64?${Buffer.from(taskId).toString('base64')}?=`;
  const headers = { 'mcp-name': encoded, ...options.headers };
  return modernPost(door, path, method, { taskId, ...params }, declared({ ...options, headers }));
}

export const getTask = (door: A2aHandler, service: string, taskId: string, options: Options = {}): Promise<Reply> =>
  askTask(door, `/mcp/${service}`, 'tasks/get', taskId, {}, options);
