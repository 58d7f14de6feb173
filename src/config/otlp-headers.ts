const PAIR = /^[\w-]+=(?:[!-$&-+\x2d-~]|%[0-9A-Fa-f]{2})*$/;

/** Says what is wrong with the text of `OTEL_EXPORTER_OTLP_HEADERS`; null for a right one. */
export function otlpHeadersFault(text: string): string | null {
  if (!text.split(',').every((pair) => PAIR.test(pair.trim()))) return 'is not a list of headers';
  try {
    otlpHeaderPairs(text);
    return null;
  } catch {
    return 'has a value whose percent-encoding is not UTF-8';
  }
}

/** Headers by their names in small letters. `text` is a right one, or null for none. */
export const otlpHeaderPairs = (text: string | null): readonly (readonly [name: string, value: string])[] =>
  (text === null ? [] : text.split(',')).map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim().toLowerCase(), decodeURIComponent(pair.slice(at + 1).trim())];
  });
