import { nearest } from '#config';

/**
 * The error text for an unknown member of an object, with a suggestion if a known member is similar. `param`: the
 * member's path.
 */
export function unknownMember(param: string, known: readonly string[]): string {
  if (known.length === 0) return `${param} is not known here: this request takes no members in its body`;
  const meant = nearest(param.split('.').at(-1)!, known);
  return `${param} is not known here${meant === null ? '.' : `; did you mean ${meant}?`} Known are ${known.join(', ')}`;
}
