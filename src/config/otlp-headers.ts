const PAIR = /^[\w-]+ *=(?:[ -$&-+\x2d-~]|%[0-9A-Fa-f]{2})*$/;
/** A valid value of an HTTP header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers of the body and the connection, which the exporter sets itself. With other values every post would fail. */
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

/** Returns the fault of the text of `OTEL_EXPORTER_OTLP_HEADERS`. null for a valid text. */
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

/** The headers, with their names in lower case. `text` must be valid, or null without headers. */
export const otlpHeaderPairs = (text: string | null): readonly (readonly [name: string, value: string])[] =>
  pairsOf(text ?? '').map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())];
  });

/** Splits the text into pairs. Like OpenTelemetry's SDKs, it ignores spaces around a pair and extra commas. */
const pairsOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
