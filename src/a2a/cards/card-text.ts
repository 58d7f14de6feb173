import { isObject } from '#wire';

/**
 * Control, format (bidi overrides, zero width), surrogates, private and unassigned code points, but for tabs and
 * line ends.
 */
const UNPRINTABLE = /[^\P{C}\t\n]/gu;
const MEDIA_TYPE = /^[\w!#$&^.+*-]{1,100}(?:\/[\w!#$&^.+*-]{1,100})?(?:; ?[\w.+-]{1,40}=[\w.+-]{1,40})?$/;
const URL_LENGTH_MAX = 2_048;

/**
 * Text of a stranger for people to read: at most `max` characters, without those that do not print. Empty for any
 * other value.
 */
export function cardText(value: unknown, max: number): string {
  if (typeof value !== 'string') return '';
  // Cut first: the answer to a megabyte is as cheap as to a word.
  const text = value
    .slice(0, max * 2)
    .replace(UNPRINTABLE, '')
    .slice(0, max);
  // The cut may have split a character of two units.
  return (text.isWellFormed() ? text : text.slice(0, -1)).trim();
}

/** The texts of a list that have any, each once. */
export function cardTexts(value: unknown, countMax: number, max: number): readonly string[] {
  return distinct(value, countMax, (text) => cardText(text, max) || null);
}

/** The media types of a list, as `text/plain`; also their first halves alone, which old cards have. */
export function mediaTypes(value: unknown): readonly string[] {
  return distinct(value, 64, (text) => (typeof text === 'string' && MEDIA_TYPE.test(text) ? text : null));
}

/** An address for people to open: http or https without a password in it. null for any other. */
export function webUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > URL_LENGTH_MAX) return null;
  const url = URL.parse(value);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return null;
  return url.username === '' && url.password === '' && url.href.length <= URL_LENGTH_MAX ? url.href : null;
}

/** A JSON value as an object; an empty object for any other value. */
export function membersOfValue(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** The first elements of a list; empty for any other value. */
export function elementsOfValue(value: unknown, countMax: number): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, countMax) : [];
}

function distinct(value: unknown, countMax: number, read: (element: unknown) => string | null): readonly string[] {
  const found = elementsOfValue(value, countMax).map(read);
  return [...new Set(found.filter((text) => text !== null))];
}
