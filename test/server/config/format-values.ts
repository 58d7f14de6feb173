/** Values that follow from the words of a format, as a file has them. null: its words do not say which. */
export interface FormatValues {
  /** Right values, with what becomes of them. For amounts, none. */
  readonly right: readonly (readonly [toml: string, is: unknown])[];
  readonly wrong: readonly string[];
}

/**
 * The least, the largest and all the words that a format takes, and what lies beside them. The page
 * `docs/reference/configuration.md` shows the formats, and a test compares it, so a bound does not change unseen.
 */
export function valuesOfFormat(takes: string): FormatValues | null {
  const whole = /^whole number, (\d+) to (\d+)$/.exec(takes);
  if (whole !== null) {
    const [min, max] = [Number(whole[1]), Number(whole[2])];
    const right = [...new Set([min, max])].map((one) => [String(one), one] as const);
    return { right, wrong: [`${min - 1}`, `${max + 1}`, `${min}.5`, `"${min}"`, 'true', 'inf'] };
  }
  const words = /^one of (.+)$/.exec(takes)?.[1]?.match(/[^`, ]+/g);
  if (words !== undefined && words !== null)
    return { right: words.map((word) => [`"${word}"`, word]), wrong: [`"${words[0].toUpperCase()}"`, '""', '1'] };
  if (takes === '`true` or `false`')
    return { right: [true, false].map((one) => [String(one), one]), wrong: ['"true"', '1'] };
  const amount = /^USD(?: per [^.]+)?, (\d[\d.]*) to (\d+)(?:, or 0 for free)?$/.exec(takes);
  if (amount === null) return null;
  const [, min = '', max = ''] = amount;
  const under = min === '0' ? [] : [min.replace(/\d$/, '0$&')];
  return { right: [], wrong: ['-1', `${max}.1`, ...under, '"much"', 'nan', 'true'] };
}
