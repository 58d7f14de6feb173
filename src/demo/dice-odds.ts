const ROLL = /(?<![\w.])(\d{0,3})d(\d{1,4})([+-]\d{1,6})?:(?:[ \d+-]*=)? *(-?\d{1,9})/i;

/**
 * Returns a remark on a roll such as `2d6: 4 + 2 = 6`, depending on how likely the sum was. Returns null for a text
 * without a roll.
 */
export function commentOn(text: string): string | null {
  const [, count, sides, added, sum] = ROLL.exec(text) ?? [];
  if (sides === undefined) return null;
  const [dice, faces, more, total] = [Number(count || 1), Number(sides), Number(added ?? 0), Number(sum)];
  const expected = (dice * (faces + 1)) / 2 + more;
  if (total === dice * faces + more) return `${total} is the most that these dice have. Stop while you are ahead.`;
  if (total === dice + more) return `${total} is the least that these dice have. From here it can only get better.`;
  if (total === expected) return `${total} is just what was to be expected.`;
  return `${total} is ${total > expected ? 'above' : 'below'} the ${expected} that was to be expected.`;
}
