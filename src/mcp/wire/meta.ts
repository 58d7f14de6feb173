import { isObject, membersOf, type Span, splice, withMembers } from '#wire';
import type { RawMessage } from '#json-rpc';

/**
 * A message with members set in the `_meta` of its `params` or `result`. Missing objects are created. Values are JSON
 * text, and null removes a member. `read`: the parsed message, if the caller has it. It saves a second scan of a result
 * without `_meta`, which is the usual case.
 */
export function withMeta(
  text: string,
  place: 'params' | 'result',
  meta: Readonly<Record<string, string | null>>,
  read: RawMessage | null = null,
): string {
  const holder = (read?.members ?? membersOf(text)).get(place);
  const json = madeOf(meta);
  if (!holder)
    return splice(text, [
      withMembers(text, { start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 }, { [place]: `{"_meta":${json}}` }),
    ]);
  if (text[holder.start] !== '{') return text;
  const value = read?.value[place];
  if (isObject(value) && !Object.hasOwn(value, '_meta')) return append(text, holder, `"_meta":${json}`);
  return withMetaAt(text, holder, meta);
}

/** The text with members set in the `_meta` of the object at `holder`, as in withMeta. */
export function withMetaAt(text: string, holder: Span, meta: Readonly<Record<string, string | null>>): string {
  const old = membersOf(text, holder.start).get('_meta');
  return splice(text, [
    old && text[old.start] === '{' ? withMembers(text, old, meta) : withMembers(text, holder, { _meta: madeOf(meta) }),
  ]);
}

function madeOf(meta: Readonly<Record<string, string | null>>): string {
  const members = Object.entries(meta).filter(([, value]) => value !== null);
  return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

/** The text with one more member at the end of the object at `span`. The object must not have a member of this name. */
function append(text: string, { end }: Span, member: string): string {
  let last = end - 2;
  while (SPACE.has(text.charCodeAt(last))) last--;
  const comma = text[last] === '{' ? '' : ',';
  return text.slice(0, last + 1) + comma + member + text.slice(last + 1);
}

const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The message without the members `keys` of `params._meta`. The same text if it has none of them. */
export function withoutMeta(text: string, keys: readonly string[]): string {
  const params = membersOf(text).get('params');
  const meta = params && membersOf(text, params.start).get('_meta');
  if (!meta || text[meta.start] !== '{') return text;
  const members = membersOf(text, meta.start);
  const there = keys.filter((key) => members.has(key));
  return there.length === 0
    ? text
    : splice(text, [withMembers(text, meta, Object.fromEntries(there.map((key) => [key, null])))]);
}
