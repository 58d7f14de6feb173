// `npm run docs` uses this to write the tables of docs/reference/configuration.md from the options in the code. A test
// compares them.
import { readFileSync, writeFileSync } from 'node:fs';
import { COMMON_OPTIONS } from '../src/server/config/blocks/block.ts';
import { BLOCKS } from '../src/server/config/blocks.ts';
import { PROVIDER_OPTIONS } from '../src/server/config/blocks/provider-block.ts';
import { CHAIN_OPTIONS } from '../src/server/config/chains.ts';
import type { OptionTable } from '../src/server/config/option.ts';
import { SECTIONS } from '../src/server/config/options.ts';
import { ROUTER_OPTIONS } from '../src/providers/proxy/provider-file.ts';

const PAGE = new URL('../docs/reference/configuration.md', import.meta.url);
const HEAD = '| option | takes | default | meaning |\n|---|---|---|---|\n';
/** The place of a table in the page, with the names of the option tables that it shows. */
const PLACE = /(<!-- options: ([a-z_, ]+) -->\n)(?:\|.*\n)*/g;

/** All option tables, by their names in the page. Options that every block has are in a table of their own. */
export const OPTION_TABLES: Readonly<Record<string, OptionTable>> = {
  ...Object.fromEntries(Object.entries(SECTIONS).map(([section, options]) => [section, below(section, options)])),
  chains: below('chains', CHAIN_OPTIONS),
  blocks: COMMON_OPTIONS,
  ...Object.fromEntries(
    Object.entries(BLOCKS).map(([table, { offer, target }]) => [table, below(table, own({ ...offer, ...target }))]),
  ),
  providers: below('providers', PROVIDER_OPTIONS),
  router: below('router', ROUTER_OPTIONS),
};

function below(table: string, options: OptionTable): OptionTable {
  return Object.fromEntries(Object.entries(options).map(([key, option]) => [`${table}.${key}`, option]));
}

function own(options: OptionTable): OptionTable {
  return Object.fromEntries(Object.entries(options).filter(([key]) => !Object.hasOwn(COMMON_OPTIONS, key)));
}

/** Returns the page with updated tables. Throws if a table is unknown, missing or duplicated. */
export function withOptionTables(page: string): string {
  const missing = new Set(Object.keys(OPTION_TABLES));
  const written = page.replaceAll(PLACE, (_all, place: string, names: string) => {
    const rows = names.split(', ').flatMap((name) => {
      if (!missing.delete(name)) throw new Error(`${name} is not a table of options, or is on the page twice`);
      return Object.entries(OPTION_TABLES[name]!).map(row);
    });
    return `${place}${HEAD}${rows.join('')}`;
  });
  if (missing.size > 0) throw new Error(`the page has no place for ${[...missing].join(', ')}`);
  return written;
}

function row([key, { env, takes, defaultText, secret, meaning }]: [string, OptionTable[string]]): string {
  const isProse = secret || /\s|^none$/.test(defaultText ?? '');
  const fallback = defaultText === null ? '**required**' : isProse ? defaultText : `\`${defaultText}\``;
  return `| \`${key}\`${env === null ? '' : `<br>\`${env}\``} | ${takes} | ${fallback} | ${fromReference(meaning)} |\n`;
}

/** Links of meanings are relative to `docs/`, and the page is in a folder of it. */
const fromReference = (meaning: string): string => meaning.replaceAll(/\]\((?!https?:)/g, '](../');

if (import.meta.main) writeFileSync(PAGE, withOptionTables(readFileSync(PAGE, 'utf8')));
