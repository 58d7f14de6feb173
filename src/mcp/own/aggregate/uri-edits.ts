import { membersOf, RawJsonError, splice, elementsOf, type Edit, type Members } from '#wire';
import { exposeUri } from './names.ts';

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

const UI_RAW = '"ui://';

/**
 * The edits that change URIs of a service into those of the aggregate, in JSON text of the service. Unreadable parts
 * are unchanged.
 */
interface UriEdits {
  uri(members: Members | null, key: string): void;
  /** Edits the URI of a tool's user interface, which MCP Apps have in `_meta`. */
  ui(members: Members | null): void;
  content(members: Members | null, key: string): void;
  inside(members: Members | null, key: string): Members | null;
  /** The members of each object in the array in member `key`. */
  each(members: Members | null, key: string): readonly (Members | null)[];
  readonly edits: readonly Edit[];
}

export function createUriEdits(text: string, slug: string): UriEdits {
  const edits: Edit[] = [];

  const objectAt = (start: number): Members | null =>
    read(() => (text[start] === '{' ? membersOf(text, start) : null), null);
  const stringOf = (members: Members | null, key: string): string | null => {
    const member = members?.get(key);
    return member && text[member.start] === '"' ? (JSON.parse(text.slice(member.start, member.end)) as string) : null;
  };

  const self: UriEdits = {
    edits,
    inside(members, key) {
      const member = members?.get(key);
      return member ? objectAt(member.start) : null;
    },
    each(members, key) {
      const member = members?.get(key);
      if (!member || text[member.start] !== '[') return [];
      return read(() => elementsOf(text, member.start), []).map(({ start }) => objectAt(start));
    },
    uri(members, key) {
      const uri = stringOf(members, key);
      if (uri === null) return;
      const { start, end } = members!.get(key)!;
      // If the slug can simply be inserted, the rest stays exactly as the service wrote it.
      const at = uri.startsWith('ui://') ? (text.startsWith(UI_RAW, start) ? start + UI_RAW.length : null) : start + 1;
      if (at === null) edits.push({ start, end, text: JSON.stringify(exposeUri(slug, uri)) });
      else edits.push({ start: at, end: at, text: at === start + 1 ? `${slug}+` : `${slug}/` });
    },
    ui(members) {
      const meta = self.inside(members, '_meta');
      self.uri(meta, 'ui/resourceUri');
      self.uri(self.inside(meta, 'ui'), 'resourceUri');
    },
    content(members, key) {
      const member = members?.get(key);
      if (!member) return;
      for (const block of text[member.start] === '[' ? self.each(members, key) : [objectAt(member.start)]) {
        const type = stringOf(block, 'type');
        if (type === 'resource_link') self.uri(block, 'uri');
        else if (type === 'resource') self.uri(self.inside(block, 'resource'), 'uri');
      }
    },
  };
  return self;
}

function read<T>(reading: () => T, otherwise: T): T {
  try {
    return reading();
  } catch (error) {
    if (error instanceof RawJsonError) return otherwise;
    throw error;
  }
}
