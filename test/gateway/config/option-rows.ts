import { BLOCKS } from '../../../src/config/blocks/blocks.ts';
import { COMMON_OPTIONS } from '../../../src/config/blocks/block-options.ts';
import { CHAIN_OPTIONS } from '../../../src/config/chain-options.ts';
import type { OptionTable } from '../../../src/config/option.ts';
import { OPTIONS } from '../../../src/config/options.ts';
import { ROUTER_OPTIONS } from '../../../src/provide/router-options.ts';

/** All tables of options by what their keys begin with; those that every block has stand once. */
export const optionTables: readonly (readonly [prefix: string, options: OptionTable])[] = [
  ['', OPTIONS],
  ['chains.', CHAIN_OPTIONS],
  ['', COMMON_OPTIONS],
  ...Object.entries(BLOCKS).map(([table, { offer, target }]) => [`${table}.`, own({ ...offer, ...target })] as const),
  ['router.', ROUTER_OPTIONS],
];

/** All rows that the page must have. */
export const optionRows: readonly string[] = optionTables.flatMap(([prefix, options]) =>
  Object.entries(options).map(([key, { env, takes, defaultText, secret, meaning }]) => {
    const plain = secret || /\s|^none$/.test(defaultText ?? '');
    const fallback = defaultText === null ? '**required**' : plain ? defaultText : `\`${defaultText}\``;
    return `| \`${prefix}${key}\`${env === null ? '' : `<br>\`${env}\``} | ${takes} | ${fallback} | ${meaning} |`;
  }),
);

function own(options: OptionTable): OptionTable {
  return Object.fromEntries(Object.entries(options).filter(([key]) => !Object.hasOwn(COMMON_OPTIONS, key)));
}
