const SENTINEL = { start: '=?base64?', end: '?=' } as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Texts that a header can carry unchanged: printable ASCII and tabs, without white space at the ends. */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of an Mcp-Name or Mcp-Param-* value. The value may be `=?base64?…?=`; null if that is not valid Base64 of
 * UTF-8.
 */
export function decodeHeaderValue(value: string): string | null {
  if (!isEncoded(value)) return value;
  const base64 = value.slice(SENTINEL.start.length, -SENTINEL.end.length);
  if (!BASE64.test(base64)) return null;
  try {
    return utf8.decode(Buffer.from(base64, 'base64'));
  } catch {
    return null;
  }
}

/**
 * A text as a header value. It becomes Base64 if a header cannot carry it, or if it looks like the Base64 form itself.
 */
export function encodeHeaderValue(text: string): string {
  return PLAIN.test(text) && !isEncoded(text)
    ? text
    : SENTINEL.start + Buffer.from(text).toString('base64') + SENTINEL.end;
}

const isEncoded = (value: string) =>
  value.length >= SENTINEL.start.length + SENTINEL.end.length &&
  value.startsWith(SENTINEL.start) &&
  value.endsWith(SENTINEL.end);

/** A header value without the white space that HTTP allows around it. Runs in linear time. */
export function trimHeader(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value, start)) start++;
  while (end > start && isSpace(value, end - 1)) end--;
  return value.slice(start, end);
}

const isSpace = (value: string, at: number) => value[at] === ' ' || value[at] === '\t';
