import { nearest } from '#config';

/** What is said of a member that an object does not have, with the one that was perhaps meant. `param` is its path. */
export function unknownMember(param: string, known: readonly string[]): string {
  if (known.length === 0) return `${param} is not known here: this request takes no members in its body`;
  const meant = nearest(param.split('.').at(-1)!, known);
  return `${param} is not known here${meant === null ? '.' : `; did you mean ${meant}?`} Known are ${known.join(', ')}`;
}
