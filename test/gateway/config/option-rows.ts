import type { Option } from '../../../src/gateway/config-option.ts';
import { MODEL_OPTIONS } from '../../../src/gateway/config-models.ts';
import { OPTIONS } from '../../../src/gateway/config-options.ts';

/** The row of an option as docs/configuration.md has it. */
function row(key: string, option: Option<unknown>): string {
  const fallback =
    option.defaultText === null ? '**required**' : option.secret || /\s/.test(option.defaultText) ? option.defaultText : `\`${option.defaultText}\``;
  return `| \`${key}\` | ${option.env === null ? '' : `\`${option.env}\``} | ${option.takes} | ${fallback} | ${option.meaning} |`;
}

/** All rows that the page must have, in the order of the tables. */
export const optionRows: readonly string[] = [
  ...Object.entries<Option<unknown>>(OPTIONS).map(([key, option]) => row(key, option)),
  ...Object.entries<Option<unknown>>(MODEL_OPTIONS).map(([key, option]) => row(`models.${key}`, option)),
];
