const PAIR = /^[\w-]+ *=(?:[ -$&-+\x2d-~]|%[0-9A-Fa-f]{2})*$/;
/** The value of a header, as HTTP takes it. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers of the body and of the connection: another value of these fails each post. */
const OWN: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/** Says what is wrong with the text of `OTEL_EXPORTER_OTLP_HEADERS`; null for a right one. */
export function otlpHeadersFault(text: string): string | null {
  if (!pairsOf(text).every((pair) => PAIR.test(pair))) return 'is not a list of headers';
  try {
    const pairs = otlpHeaderPairs(text);
    const own = pairs.find(([name]) => OWN.has(name));
    if (own !== undefined) return `names ${own[0]}, which each post has of its own`;
    return pairs.every(([, value]) => VALUE.test(value)) ? null : 'holds characters that no header may have';
  } catch {
    return 'has a value whose percent-encoding is not UTF-8';
  }
}

/** Headers by their names in small letters. `text` is a right one, or null for none. */
export const otlpHeaderPairs = (text: string | null): readonly (readonly [name: string, value: string])[] =>
  pairsOf(text ?? '').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())];
  });

/** Spaces around a pair, and a comma too many, are taken as the SDKs of OpenTelemetry take them. */
const pairsOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
