import { membersOf, RawJsonError, splice } from '#wire';
import { createUriEdits } from './uri-edits.ts';

/**
 * A message of a service (JSON text) for a client of the aggregate. URIs of resources in results and in
 * `notifications/resources/updated` become those of the aggregate. All else is unchanged.
 */
export function toClientText(text: string, slug: string): string {
  // A quick check, because most results have no URI. The key may be written with an escape.
  if (!/uri|\\u/i.test(text)) return text;
  try {
    const message = membersOf(text);
    const edits = createUriEdits(text, slug);
    const result = edits.inside(message, 'result');
    for (const contents of edits.each(result, 'contents')) edits.uri(contents, 'uri');
    edits.content(result, 'content');
    for (const prompted of edits.each(result, 'messages')) edits.content(prompted, 'content');
    edits.ui(result);
    // The result of a task.
    edits.content(edits.inside(result, 'result'), 'content');
    const method = message.get('method');
    if (method && JSON.parse(text.slice(method.start, method.end)) === 'notifications/resources/updated')
      edits.uri(edits.inside(message, 'params'), 'uri');
    return edits.edits.length === 0 ? text : splice(text, edits.edits);
  } catch (error) {
    if (error instanceof RawJsonError) return text;
    throw error;
  }
}
