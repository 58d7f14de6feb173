import { type Edit, isObject, membersOf, type RequestMessage, setMember, splice, withMembers } from '#wire';
import { META } from '../../../wire/revisions.ts';

/** Members of `_meta` that make a request modern. A legacy server gets the same facts from its session. */
const ENVELOPE = [META.version, META.capabilities, META.clientInfo, META.logLevel];
/** Members of `params` that continue an earlier round. Legacy servers do not know them. */
const ROUND = ['inputResponses', 'requestState'];

/**
 * A request for its session. It has no envelope. Its id and its progress token are a number of the session, because
 * many clients count both from 0. Every other character stays.
 */
export function toLegacyRequest({ text, members }: RequestMessage, id: number): string {
  const edits: Edit[] = [setMember(text, 0, 'id', String(id))];
  const params = members.get('params');
  if (!params) return splice(text, edits);
  const change: Record<string, string | null> = {};
  const inside = membersOf(text, params.start);
  for (const key of ROUND) if (inside.has(key)) change[key] = null;
  const meta = inside.get('_meta');
  if (meta && text[meta.start] === '{') {
    const entries = membersOf(text, meta.start);
    const dropped = ENVELOPE.filter((key) => entries.has(key));
    const changes: Record<string, string | null> = Object.fromEntries(dropped.map((key) => [key, null]));
    if (entries.has('progressToken')) changes['progressToken'] = String(id);
    if (dropped.length > 0 && dropped.length === entries.size) change['_meta'] = null;
    else if (Object.keys(changes).length > 0) change['_meta'] = withMembers(text, meta, changes).text;
  }
  if (Object.keys(change).length > 0) edits.push(withMembers(text, params, change));
  return splice(text, edits);
}

/** The progress token that the client gave, as JSON text; null without one. */
export function progressTokenOf({ text, members, params }: RequestMessage): string | null {
  if (!isObject(params?.['_meta']) || !Object.hasOwn(params['_meta'], 'progressToken')) return null;
  const meta = membersOf(text, members.get('params')!.start).get('_meta')!;
  const { start, end } = membersOf(text, meta.start).get('progressToken')!;
  return text.slice(start, end);
}
