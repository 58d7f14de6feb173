import { formatUsd } from '#billing/amounts';
import { camelKey } from './camel-keys.ts';
import { BLOCK_TABLES, BLOCKS } from './blocks/blocks.ts';
import { CHAIN_OPTIONS } from './chain-options.ts';
import { flagOf, givenOutside, loadConfig, readSections, type LoadOptions } from './file.ts';
import { indexLines, type LineOf } from './lines.ts';
import type { Option, OptionTable } from './option.ts';
import { SECTIONS } from './options.ts';
import { isTable, REFERENCE, type Reading, type Table } from './reading.ts';
import { parseToml, readTomlFile } from './toml.ts';

/** One option of a gateway, with the source of its value. */
export interface ExplainedOption {
  /** The key path, such as `server.port` or `models[0].pricing.prompt`. */
  readonly key: string;
  /** null if the option has no value, and for a secret. */
  readonly value: unknown;
  /** True if the option has a value that is not shown. */
  readonly hidden: boolean;
  readonly source: 'default' | 'file' | 'environment' | 'flag';
  /** The place of the value: `tollgate.toml:12`, `environment variable PORT` or `--port`. null for a default. */
  readonly from: string | null;
}

export interface ExplainedConfig {
  readonly file: string | null;
  readonly options: readonly ExplainedOption[];
}

/**
 * Every option outside of blocks, and the keys that are present in blocks, each with the place of its value. The values
 * of secrets are left out. Throws ConfigError like loadConfig.
 */
export function explainConfig(options: LoadOptions): ExplainedConfig {
  const { file } = options;
  const text = options.text ?? (file === null ? '' : readTomlFile(file));
  loadConfig({ ...options, text });
  const table = parseToml(text, file);
  const lineOf = indexLines(text);
  const reading: Reading = { file, lineOf, env: options.env, problems: [] };
  const values = readSections(table, options, reading) as unknown as Record<string, Record<string, unknown>>;
  const explained: ExplainedOption[] = [];
  for (const [section, own] of Object.entries(SECTIONS)) {
    const valuesOfSection = values[camelKey(section)]!;
    const written = isTable(table[section]) ? table[section] : {};
    for (const [key, option] of Object.entries(own) as [string, Option<unknown>][])
      explained.push({
        key: `${section}.${key}`,
        ...shown(option.secret, valuesOfSection[camelKey(key)]),
        ...sourceOf({ section, key, option, written, lineOf }, options),
      });
  }
  for (const name of BLOCK_TABLES) {
    const { offer, target } = BLOCKS[name];
    explained.push(...explainBlocks(name, table[name], { ...offer, ...target }, file, lineOf));
  }
  explained.push(...explainBlocks('chains', table['chains'], CHAIN_OPTIONS, file, lineOf));
  return { file, options: explained };
}

interface Written {
  readonly section: string;
  readonly key: string;
  readonly option: Option<unknown>;
  readonly written: Table;
  readonly lineOf: LineOf;
}

function sourceOf(
  { section, key, option, written, lineOf }: Written,
  options: LoadOptions,
): Pick<ExplainedOption, 'source' | 'from'> {
  const { flag, variable } = givenOutside(section, key, option, options);
  if (flag !== undefined) return { source: 'flag', from: flagOf(key) };
  if (variable !== undefined) return { source: 'environment', from: `environment variable ${option.env}` };
  if (!Object.hasOwn(written, key)) return { source: 'default', from: null };
  return { source: 'file', from: placeIn(options.file, lineOf(`${section}.${key}`), written[key]) };
}

/** The place in the file. For a secret in an environment variable it includes the name of the variable. */
function placeIn(file: string | null, line: number | null, value: unknown): string {
  const reference = typeof value === 'string' && value.startsWith(REFERENCE) ? value.slice(REFERENCE.length) : null;
  const place = `${file ?? 'file'}${line === null ? '' : `:${line}`}`;
  return reference === null ? place : `${place}, environment variable ${reference}`;
}

/** The user and password of a URL are secret in every option. */
const USER_OF_URL = /^(\w+:\/\/)[^/?#]*@/;

function shown(secret: boolean, value: unknown): Pick<ExplainedOption, 'value' | 'hidden'> {
  if (value === null || value === undefined) return { value: null, hidden: false };
  if (secret) return { value: null, hidden: true };
  // Amounts are written in USD.
  if (typeof value === 'bigint') return { value: formatUsd(value), hidden: false };
  return { value: typeof value === 'string' ? value.replace(USER_OF_URL, '$1…@') : value, hidden: false };
}

/** The keys that are present in blocks. Their defaults are in the documentation. */
function explainBlocks(
  name: string,
  blocks: unknown,
  table: OptionTable,
  file: string | null,
  lineOf: LineOf,
): readonly ExplainedOption[] {
  if (!Array.isArray(blocks)) return [];
  return (blocks as readonly Table[]).flatMap((block, index) =>
    writtenKeys(block, table).map(([key, value]) => {
      const path = `${name}[${index}].${key}`;
      return {
        key: path,
        ...shown(table[key]?.secret ?? true, value),
        source: 'file' as const,
        from: placeIn(file, lineOf(path), value),
      };
    }),
  );
}

/** The keys and values of a block, with the dotted keys of its options. */
function writtenKeys(block: Table, table: OptionTable, prefix = ''): readonly (readonly [string, unknown])[] {
  return Object.entries(block).flatMap(([key, value]) => {
    const path = `${prefix}${key}`;
    return table[path] === undefined && isTable(value)
      ? writtenKeys(value, table, `${path}.`)
      : [[path, value] as const];
  });
}
