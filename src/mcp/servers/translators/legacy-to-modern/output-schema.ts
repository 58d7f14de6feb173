import { elementsOf, isObject, membersOf, type Span, splice, withMembers } from '#wire';

/**
 * The list in `result.tools`, changed for a legacy client. Outputs of legacy tools are always objects, and a client of
 * the official library refuses a whole list because of one other output. The schema of an output that is never an
 * object is wrapped as that of `{"result": …}`, which is also the form of its `structuredContent` (see objectContent).
 * A schema that allows both, or that has references, is left out, because a wrapped reference would point to the wrong
 * place. Null: no change.
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

/** The `structuredContent` of a result for a legacy client, if it is not an object. Null: no change. */
export function objectContent(text: string, content: Span, value: unknown): string | null {
  return isObject(value) ? null : `{"result":${text.slice(content.start, content.end)}}`;
}
