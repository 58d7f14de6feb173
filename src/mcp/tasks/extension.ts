import { isObject, type JsonObject, membersOf, splice, withMembers } from '#gateway';

/** The extension by which a modern server answers a `tools/call` with a task. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** The requests about a task that there is. */
export const TASK_METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const;
export type TaskMethod = (typeof TASK_METHODS)[number];

export const isTaskMethod = (method: string): method is TaskMethod => (TASK_METHODS as readonly string[]).includes(method);

/** Whether a client that declares this takes tasks. */
export function declaresTasks({ extensions }: JsonObject): boolean {
  return isObject(extensions) && isObject(extensions[TASKS]);
}

/** Capabilities of either side (JSON text of an object) without tasks, of either era, for a counterpart that they are not carried to. */
export function withoutTasks(capabilities: string): string {
  const members = membersOf(capabilities);
  const extensions = members.get('extensions');
  const inner = extensions && capabilities[extensions.start] === '{' ? membersOf(capabilities, extensions.start) : undefined;
  if (!members.has('tasks') && inner?.has(TASKS) !== true) return capabilities;
  const left = inner?.has(TASKS) ? splice(capabilities, [withMembers(capabilities, extensions!, { [TASKS]: null })]) : capabilities;
  // An object of extensions that held tasks alone goes with them.
  const emptied = inner?.has(TASKS) === true && inner.size === 1;
  return splice(left, [withMembers(left, { start: 0, end: left.length }, { tasks: null, ...(emptied ? { extensions: null } : {}) })]);
}

/** A message or a result (JSON text) whose object at `path` holds `capabilities`, with these as withoutTasks leaves them. */
export function withoutTasksIn(text: string, path: readonly string[]): string {
  let members = membersOf(text);
  for (const key of path) {
    const inner = members.get(key);
    if (!inner || text[inner.start] !== '{') return text;
    members = membersOf(text, inner.start);
  }
  const place = members.get('capabilities');
  if (!place || text[place.start] !== '{') return text;
  const capabilities = text.slice(place.start, place.end);
  const left = withoutTasks(capabilities);
  return left === capabilities ? text : splice(text, [{ start: place.start, end: place.end, text: left }]);
}
