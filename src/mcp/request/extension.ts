import { isObject, type JsonObject, membersOf, parseExact, RawJsonError, splice, withMembers, elementsOf } from '#wire';
import type { RequestMessage } from '#json-rpc';
import { readOwnRequest } from '../wire/own-messages.ts';

/** The extension that lets a modern server answer a `tools/call` with a task. */
export const TASKS = 'io.modelcontextprotocol/tasks';

const TASK_METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;
type TaskMethod = (typeof TASK_METHODS)[number];

export const isTaskMethod = (method: string): method is TaskMethod =>
  (TASK_METHODS as readonly string[]).includes(method);

export function declaresTasks({ extensions }: JsonObject): boolean {
  return isObject(extensions) && isObject(extensions[TASKS]);
}

/** Capabilities of a client or a server (JSON text of an object) without tasks of either era. */
export function withoutTasks(capabilities: string): string {
  const members = membersOf(capabilities);
  const extensions = members.get('extensions');
  const inner =
    extensions && capabilities[extensions.start] === '{' ? membersOf(capabilities, extensions.start) : undefined;
  if (!members.has('tasks') && inner?.has(TASKS) !== true) return capabilities;
  const rest = inner?.has(TASKS)
    ? splice(capabilities, [withMembers(capabilities, extensions!, { [TASKS]: null })])
    : capabilities;
  // If `extensions` had only tasks, it is removed too.
  const emptied = inner?.has(TASKS) === true && inner.size === 1;
  return splice(rest, [
    withMembers(rest, { start: 0, end: rest.length }, { tasks: null, ...(emptied ? { extensions: null } : {}) }),
  ]);
}

/** Parsed capabilities of a client or a server without tasks of either era. */
export function withoutTaskMembers({ tasks: _tasks, extensions, ...rest }: JsonObject): JsonObject {
  if (extensions === undefined) return rest;
  if (!isObject(extensions) || !Object.hasOwn(extensions, TASKS)) return { ...rest, extensions };
  const { [TASKS]: _extension, ...others } = extensions;
  return Object.keys(others).length === 0 ? rest : { ...rest, extensions: others };
}

/**
 * A message (JSON text) with capabilities in its `params` or `result`. Removes tasks from them as withoutTasks does. If
 * a key occurs twice, the last value counts, as for most readers.
 */
export function withoutTasksIn(text: string, holder: 'params' | 'result'): string {
  const held = membersOf(text).get(holder);
  if (!held || text[held.start] !== '{') return text;
  try {
    const place = membersOf(text, held.start).get('capabilities');
    if (!place || text[place.start] !== '{') return text;
    const capabilities = text.slice(place.start, place.end);
    const rest = withoutTasks(capabilities);
    return rest === capabilities ? text : splice(text, [{ start: place.start, end: place.end, text: rest }]);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return withoutTasksIn(JSON.stringify(parseExact(text)), holder);
  }
}

/** Whether a tool (JSON text) can be called only as a task, in the form of 2025-11-25. */
function needsTask(tool: string): boolean {
  if (!tool.includes(WORD)) return false;
  const { execution } = JSON.parse(tool) as { readonly execution?: unknown };
  return isObject(execution) && execution['taskSupport'] === 'required';
}

const WORD = 'taskSupport';

/**
 * The result of a `tools/list` (JSON text) without tools that can be called only as a task, for clients that get no
 * tasks. Throws RawJsonError, SyntaxError.
 */
export function withoutTaskTools(result: string): string {
  if (!result.includes(WORD)) return result;
  const list = membersOf(result).get('tools');
  if (!list || result[list.start] !== '[') return result;
  const tools = elementsOf(result, list.start).map(({ start, end }) => result.slice(start, end));
  const plainTools = tools.filter((tool) => !needsTask(tool));
  return plainTools.length === tools.length
    ? result
    : splice(result, [{ start: list.start, end: list.end, text: `[${plainTools.join(',')}]` }]);
}

/**
 * Removes `params.task` from a `tools/call`. A client of 2025-11-25 asks for a task with it. The gateway does not
 * support such tasks, and the protocol says that the parameter is ignored then. Every other message is unchanged.
 */
export function withoutTaskParam(message: RequestMessage): RequestMessage {
  if (message.method !== 'tools/call' || message.params?.['task'] === undefined) return message;
  const { text } = message;
  return readOwnRequest(splice(text, [withMembers(text, membersOf(text).get('params')!, { task: null })]));
}
