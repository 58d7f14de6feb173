/** Longest name of a service, and the most of one that an error message repeats. */
export const SERVICE_NAME_MAX = 128;

const UNPRINTABLE_ALL = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Text from a stranger, safe in a message: unprintable characters dropped, cut at `max`. */
export function printable(text: string, max = SERVICE_NAME_MAX): string {
  // Cut first: the answer to a megabyte is as cheap as to a word.
  return text
    .slice(0, max * 2)
    .replace(UNPRINTABLE_ALL, '')
    .slice(0, max);
}
