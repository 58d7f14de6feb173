import { isObject } from '#wire';

/**
 * Code points that do not print: control, format (bidi overrides, zero width), surrogate, private and unassigned,
 * except tabs and line ends.
 */
const UNPRINTABLE = /[^\P{C}\t\n]/gu;
const MEDIA_TYPE = /^[\w!#$&^.+*-]{1,100}(?:\/[\w!#$&^.+*-]{1,100})?(?:; ?[\w.+-]{1,40}=[\w.+-]{1,40})?$/;
const URL_LENGTH_MAX = 2_048;

/**
 * Untrusted text for display: at most `max` characters, without code points that do not print. Empty for any other
 * value.
 */
export function cardText(value: unknown, max: number): string {
  if (typeof value !== 'string') return '';
  // The text is cut first, so that a very long text costs no more than a short one.
  const text = value
    .slice(0, max * 2)
    .replace(UNPRINTABLE, '')
    .slice(0, max);
  // The cut may have split a surrogate pair.
  return (text.isWellFormed() ? text : text.slice(0, -1)).trim();
}

/** The distinct texts of a list that are not empty. */
export function cardTexts(value: unknown, countMax: number, max: number): readonly string[] {
  return distinct(value, countMax, (text) => cardText(text, max) || null);
}

/**
 * The media types of a list, such as `text/plain`. Types without a subtype are accepted too, because old cards have
 * them.
 */
export function mediaTypes(value: unknown): readonly string[] {
  return distinct(value, 64, (text) => (typeof text === 'string' && MEDIA_TYPE.test(text) ? text : null));
}

/** A link for people: http or https without credentials. null for any other value. */
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
