import { membersOf, splice, withMembers } from './raw-json.ts';

/** A message with members set in the `_meta` of its `params` or `result`, which are made where they are absent. Values are JSON text. */
export function withMeta(text: string, of: 'params' | 'result', meta: Readonly<Record<string, string>>): string {
  const holder = membersOf(text).get(of);
  const made = `{${Object.entries(meta)
    .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
    .join(',')}}`;
  if (!holder) return splice(text, [withMembers(text, { start: text.indexOf('{'), end: text.lastIndexOf('}') + 1 }, { [of]: `{"_meta":${made}}` })]);
  if (text[holder.start] !== '{') return text;
  const old = membersOf(text, holder.start).get('_meta');
  return splice(text, [old && text[old.start] === '{' ? withMembers(text, old, meta) : withMembers(text, holder, { _meta: made })]);
}

/** The message without members of `params._meta`; the same text where it has none of them. */
export function withoutMeta(text: string, keys: readonly string[]): string {
  const params = membersOf(text).get('params');
  const meta = params && membersOf(text, params.start).get('_meta');
  if (!meta || text[meta.start] !== '{') return text;
  const members = membersOf(text, meta.start);
  const there = keys.filter((key) => members.has(key));
  return there.length === 0 ? text : splice(text, [withMembers(text, meta, Object.fromEntries(there.map((key) => [key, null])))]);
}
