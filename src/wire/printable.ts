/** Longest name of a service, and the longest part of a name that an error message repeats. */
export const SERVICE_NAME_MAX = 128;

/** Control, format (bidi overrides, zero width), line separators, surrogates, private and unassigned code points. */
export const UNPRINTABLE: RegExp = /[\p{C}\p{Zl}\p{Zp}]/u;
const UNPRINTABLE_ALL = new RegExp(UNPRINTABLE, 'gu');

/** Text from a stranger, safe in a message: unprintable characters dropped, cut at `max`. */
export function printable(text: string, max = SERVICE_NAME_MAX): string {
  // Cut first: the answer to a megabyte is as cheap as to a word.
  return text
    .slice(0, max * 2)
    .replace(UNPRINTABLE_ALL, '')
    .slice(0, max);
}

/** Text from a stranger on one line: white space and unprintable characters become single spaces. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, ' ').trim();
}
