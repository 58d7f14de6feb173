/** The most characters of a service name, and of a name in an error message. */
export const SERVICE_NAME_MAX = 128;

/** Control, format (bidi overrides, zero width), line separators, surrogates, private and unassigned code points. */
export const UNPRINTABLE: RegExp = /[\p{C}\p{Zl}\p{Zp}]/u;
const UNPRINTABLE_ALL = new RegExp(UNPRINTABLE, 'gu');

/** Makes untrusted text safe for a message: removes unprintable characters and cuts it at `max`. */
export function printable(text: string, max = SERVICE_NAME_MAX): string {
  // Cut first, so that a megabyte costs no more than a word.
  return text
    .slice(0, max * 2)
    .replace(UNPRINTABLE_ALL, '')
    .slice(0, max);
}

/** Untrusted text on one line: white space and unprintable characters become single spaces. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, ' ').trim();
}
