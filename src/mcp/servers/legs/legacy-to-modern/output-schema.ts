import { elementsOf, isObject, membersOf, type Span, splice, withMembers } from '#wire';

/**
 * The list in `result.tools` for a legacy client, whose tools have outputs of objects alone: a client of the official
 * library refuses a whole list for another. The schema of an output that is never an object becomes that of
 * `{"result": …}`, as which `structuredContent` comes (see objectContent). A schema that may be one or the other, or
 * that has references (they would point elsewhere), is left out. Null: no change.
 */
export function toolsWithObjectOutput(text: string, list: Span, tools: readonly unknown[]): string | null {
  if (!tools.some(hasOtherOutput)) return null;
  const written = text.slice(list.start, list.end);
  const edits = elementsOf(written, 0).flatMap((element, index) => {
    const tool = tools[index];
    if (!hasOtherOutput(tool)) return [];
    const { start, end } = membersOf(written, element.start).get('outputSchema')!;
    return [withMembers(written, element, { outputSchema: wrapped(tool['outputSchema'], written.slice(start, end)) })];
  });
  return splice(written, edits);
}

const hasOtherOutput = (tool: unknown): tool is Readonly<Record<string, unknown>> =>
  isObject(tool) &&
  Object.hasOwn(tool, 'outputSchema') &&
  !(isObject(tool['outputSchema']) && tool['outputSchema']['type'] === 'object');

function wrapped(schema: unknown, written: string): string | null {
  if (!isObject(schema)) return null;
  const { type, $schema } = schema;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  const neverObject = types.length > 0 && types.every((each) => typeof each === 'string' && each !== 'object');
  if (!neverObject || REFERENCE.test(JSON.stringify(schema))) return null;
  const dialect = typeof $schema === 'string' ? `"$schema":${JSON.stringify($schema)},` : '';
  return `{${dialect}"type":"object","properties":{"result":${written}},"required":["result"]}`;
}

const REFERENCE = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/** The `structuredContent` of a result for a legacy client, where it is not an object; null: no change. */
export function objectContent(text: string, content: Span, value: unknown): string | null {
  return isObject(value) ? null : `{"result":${text.slice(content.start, content.end)}}`;
}
