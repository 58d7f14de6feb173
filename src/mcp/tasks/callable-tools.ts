import { elementsOf, isObject, membersOf, splice } from '#wire';

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
  const kept = tools.filter((tool) => !needsTask(tool));
  return kept.length === tools.length
    ? result
    : splice(result, [{ start: list.start, end: list.end, text: `[${kept.join(',')}]` }]);
}
