import { parseExact } from '#wire';

/**
 * A double may not hold a number with so many digits or with so large an exponent. The digits may also be part of a
 * text. What comes before an exponent is looked at too, because UUIDs often have a part such as `1e400`.
 */
const LONG_NUMBER = /\d{16}|[[:,\s]-?[\d.]+[eE]\+?\d{3}/;

/**
 * A value that is translated and then written again. `value` is the parsed `text`. Integers that a double cannot hold
 * are written with all their digits.
 */
export function exactValue(text: string, value: unknown): unknown {
  if (!LONG_NUMBER.test(text)) return value;
  try {
    return parseExact(text);
  } catch {
    // It has more long numbers than are read exactly.
    return value;
  }
}

/** Parses a text for a translation, as exactValue does. */
export const exactly = (text: string): unknown => exactValue(text, JSON.parse(text));
