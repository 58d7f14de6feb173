import { isObject, type JsonObject, membersOf, RawJsonError, splice, withMembers } from '#wire';

/** The extension that lets a modern server answer a `tools/call` with a task. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** The methods of requests about a task. */
const TASK_METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;
type TaskMethod = (typeof TASK_METHODS)[number];

export const isTaskMethod = (method: string): method is TaskMethod =>
  (TASK_METHODS as readonly string[]).includes(method);

/** Whether a client with these capabilities accepts tasks. */
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
  const left = inner?.has(TASKS)
    ? splice(capabilities, [withMembers(capabilities, extensions!, { [TASKS]: null })])
    : capabilities;
  // If `extensions` had only tasks, it is removed too.
  const emptied = inner?.has(TASKS) === true && inner.size === 1;
  return splice(left, [
    withMembers(left, { start: 0, end: left.length }, { tasks: null, ...(emptied ? { extensions: null } : {}) }),
  ]);
}

/** The same for parsed capabilities. */
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
    const left = withoutTasks(capabilities);
    return left === capabilities ? text : splice(text, [{ start: place.start, end: place.end, text: left }]);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return withoutTasksIn(JSON.stringify(JSON.parse(text)), holder);
  }
}
