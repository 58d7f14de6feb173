import { dirname } from 'node:path';
import { printable } from '#security';
import { formatUsd } from '#billing/amounts';
import { BLOCK_TABLES, readBlocks, BLOCKS } from './blocks.ts';
import { camelKeys, type Option, camelKey, type OptionTable } from './option.ts';
import { readChains, CHAIN_OPTIONS } from './chains.ts';
import { toConfig, type Config, type Mode, freeze } from './config.ts';
import { PROVIDER_OPTIONS, readProviders } from './blocks/provider-block.ts';
import type { OfferedBlock } from './known-providers.ts';
import { indexLines, parseToml, readTomlFile, type Table } from './toml.ts';
import { SECTIONS, type OptionKey, type OptionValues } from './options.ts';
import { ConfigError, nearest, show, WrongValue } from './problem.ts';
import {
  complain,
  isTable,
  lookup,
  lookupSecret,
  readOutside,
  type Environment,
  type ConfigReading,
  readTable,
  REFERENCE,
} from './reading.ts';

export interface LoadOptions {
  readonly file: string | null;
  /** The file's text, if it was read already. `file` is then used only in messages. */
  readonly text?: string;
  readonly env: Environment;
  readonly mode: Mode;
  /**
   * For a command that only has to find the gateway or its data: secrets that are not set are null, and chains have no
   * payments. Default false.
   */
  readonly placeOnly?: boolean;
  /** Models of the file's `[[providers]]`, which become services beside its blocks. Default: none. */
  readonly offered?: readonly OfferedBlock[];
  /** Values of command-line flags, by option key. */
  readonly overrides?: Readonly<Partial<Record<OptionKey, string | number | undefined>>>;
}

const BLOCKS_MAX = 10_000;
const BLOCK_NAMES: readonly string[] = [...BLOCK_TABLES, 'providers', 'chains'];

/**
 * Reads the whole configuration. Precedence: flags, environment, file, defaults. An empty variable counts as absent. A
 * value of the file must be valid even if it is overridden. Throws ConfigError with all problems.
 */
export function loadConfig(options: LoadOptions): Config {
  const text = options.text ?? (options.file === null ? '' : readTomlFile(options.file));
  const { file, env, placeOnly = false } = options;
  const reading: ConfigReading = { file, lineOf: indexLines(text), env, problems: [], placeOnly };
  const table = parseToml(text, options.file);

  const values = readSections(table, options, reading);
  if (!placeOnly) refuseKeylessStore(values.media, reading);
  refuseNarrowStore(values.media, reading);
  if (!placeOnly) refuseNamelessPeople(values.people, reading);
  // OTEL_LOGS_EXPORTER applies to all programs of a machine, so a missing endpoint is a problem only if the file asks
  // for logs.
  const isOfFile = lookup(options.env, SECTIONS.telemetry.logs_exporter.env!) === undefined;
  if (!placeOnly && isOfFile && values.telemetry.logsExporter === 'otlp' && values.telemetry.otlpEndpoint === null)
    complain(
      reading,
      'telemetry.otlp_endpoint',
      'is missing: telemetry.logs_exporter is "otlp"',
      'the OTLP/HTTP base address of the collector',
    );
  const place = { commands: false, directory: dirname(options.file ?? '.'), packages: !placeOnly };
  const chains = readChains(table['chains'], place.directory, reading);
  const rules = { max: BLOCKS_MAX, oneProvider: false };
  const providers = readProviders(table, rules, reading);
  const services = readBlocks(table, place, rules, reading, options.offered);
  if (reading.problems.length > 0) throw new ConfigError(reading.problems);
  return freeze(toConfig(options.mode, values, { chains, providers, services }));
}

function readSections(file: Table, options: LoadOptions, reading: ConfigReading): OptionValues {
  for (const section of Object.keys(file))
    if (!BLOCK_NAMES.includes(section) && !Object.hasOwn(SECTIONS, section)) unknownSection(section, reading);
  const sections = Object.entries(SECTIONS).map(([section, table]) => {
    const written = file[section] ?? {};
    if (!isTable(written)) complain(reading, section, `is ${show(written)}`, `a section: [${section}]`);
    return [section, camelKeys(readSection(isTable(written) ? written : {}, section, table, options, reading))];
  });
  return camelKeys(Object.fromEntries(sections) as object) as OptionValues;
}

/** Complains about an S3 store without its keys. Invalid values are undefined here, and so cause no second problem. */
function refuseKeylessStore(media: OptionValues['media'], reading: ConfigReading): void {
  const { s3Url, s3AccessKeyId, s3SecretAccessKey } = media;
  for (const [key, value, meaning] of [
    ['s3_access_key_id', s3AccessKeyId, 'the access key of the bucket'],
    ['s3_secret_access_key', s3SecretAccessKey, 'the secret of that access key'],
  ] as const)
    if (typeof s3Url === 'string' && value === null)
      complain(reading, `media.${key}`, 'is missing: media.s3_url is given', meaning);
}

/** Complains about a provider of people without the name and the secret of this gateway there. */
function refuseNamelessPeople(
  { issuer, clientId, clientSecret }: OptionValues['people'],
  reading: ConfigReading,
): void {
  for (const [key, value, meaning] of [
    ['client_id', clientId, 'the name of this gateway at the provider'],
    ['client_secret', clientSecret, 'the secret of this gateway at the provider'],
  ] as const)
    if (typeof issuer === 'string' && value === null)
      complain(reading, `people.${key}`, 'is missing: people.issuer is given', meaning);
}

/** Complains about a limit of stored files below that of one file: no video would ever fit. */
function refuseNarrowStore({ fileBytesMax, ...limits }: OptionValues['media'], reading: ConfigReading): void {
  for (const [key, value] of [
    ['account_bytes_max', limits.accountBytesMax],
    ['bytes_max', limits.bytesMax],
  ] as const)
    if (typeof value === 'number' && value < fileBytesMax)
      complain(
        reading,
        `media.${key}`,
        `is ${value}, and media.file_bytes_max is ${fileBytesMax}, so no video would fit`,
        `at least ${fileBytesMax}, or a smaller media.file_bytes_max`,
      );
}

function readSection(
  written: Table,
  section: string,
  table: Readonly<Record<string, Option<unknown>>>,
  options: LoadOptions,
  reading: ConfigReading,
): Readonly<Record<string, unknown>> {
  const values = { ...readTable(written, section, table, reading).values };
  for (const [key, option] of Object.entries(table)) {
    if (options.mode === 'development' && option.inDevelopment !== undefined && !Object.hasOwn(written, key))
      values[key] = option.inDevelopment;
    try {
      const { flag, variable } = givenOutside(section, key, option, options);
      if (flag !== undefined) values[key] = readOutside(option, flag, flagOf(key), reading);
      else if (variable !== undefined)
        values[key] = readOutside(option, variable, `environment variable ${option.env}`, reading);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      const from = `environment variable ${option.env}`;
      reading.problems.push({ file: null, line: null, key: from, wrong: error.message, right: error.right });
    }
  }
  return values;
}

/** The values of an option that override the file. A flag overrides a variable. */
function givenOutside(
  section: string,
  key: string,
  option: Option<unknown>,
  { env, overrides }: Pick<LoadOptions, 'env' | 'overrides'>,
) {
  return {
    flag: overrides?.[`${section}.${key}` as OptionKey],
    variable: option.env === null ? undefined : (option.secret ? lookupSecret : lookup)(env, option.env),
  };
}

const flagOf = (key: string) => `--${key === 'data_dir' ? 'data' : key.replaceAll('_', '-')}`;

function unknownSection(section: string, reading: ConfigReading): void {
  const sections = [...Object.keys(SECTIONS), ...BLOCK_NAMES];
  const path = printable(section, 64);
  if (section === 'router')
    return complain(reading, path, 'is for the provider proxy', 'the blocks alone; the gateway does not dial a router');
  const home = Object.entries(SECTIONS).find(([, options]) => Object.hasOwn(options, section))?.[0];
  if (home !== undefined) return complain(reading, path, 'is not an option here', `put it below [${home}]`);
  const guess = nearest(section, sections);
  complain(reading, path, 'is not a section', guess ? `did you mean [${guess}]?` : `one of ${sections.join(', ')}`);
}

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

interface ExplainedConfig {
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
  const reading: ConfigReading = { file, lineOf, env: options.env, problems: [] };
  const values = readSections(table, options, reading) as unknown as Record<string, Record<string, unknown>>;
  const explained: ExplainedOption[] = [];
  for (const [section, own] of Object.entries(SECTIONS)) {
    const valuesOfSection = values[camelKey(section)]!;
    const written = isTable(table[section]) ? table[section] : {};
    for (const [key, option] of Object.entries(own) as [string, Option<unknown>][]) {
      const path = `${section}.${key}`;
      const { flag, variable } = givenOutside(section, key, option, options);
      const place: Pick<ExplainedOption, 'source' | 'from'> =
        flag !== undefined
          ? { source: 'flag', from: flagOf(key) }
          : variable !== undefined
            ? {
                source: 'environment',
                from: `environment variable ${option.env}${lookup(options.env, option.env!) === undefined ? '_FILE' : ''}`,
              }
            : Object.hasOwn(written, key)
              ? { source: 'file', from: placeIn(file, lineOf(path), written[key]) }
              : { source: 'default', from: null };
      explained.push({ key: path, ...explain(option.secret, valuesOfSection[camelKey(key)]), ...place });
    }
  }
  // Of blocks only the keys that are present. Their defaults are in the documentation.
  for (const { path, value, isSecret } of keysOfBlocks(table))
    explained.push({
      key: path,
      ...explain(isSecret, value),
      source: 'file',
      from: placeIn(file, lineOf(path), value),
    });
  return { file, options: explained };
}

function* keysOfBlocks(table: Table) {
  const tables: readonly (readonly [string, OptionTable])[] = [
    ...BLOCK_TABLES.map((name) => [name, { ...BLOCKS[name].offer, ...BLOCKS[name].target }] as const),
    ['providers', PROVIDER_OPTIONS],
    ['chains', CHAIN_OPTIONS],
  ];
  for (const [name, keys] of tables)
    for (const [index, block] of ((table[name] ?? []) as readonly Table[]).entries())
      for (const [key, value] of writtenKeys(block, keys))
        yield { path: `${name}[${index}].${key}`, value, isSecret: keys[key]?.secret ?? true };
}

/** An address may have a secret in it, or none. */
const ADDRESS = /(?:^|[._])url$/;

/**
 * The secrets that stand in a file themselves, instead of a reference to the environment: their keys and lines. `text`:
 * that of a file which loadConfig accepts.
 */
export function literalSecrets(
  text: string,
  file: string,
): readonly { readonly key: string; readonly line: number | null }[] {
  const table = parseToml(text, file);
  const lineOf = indexLines(text);
  const ofSections = Object.entries(SECTIONS).flatMap(([section, own]) =>
    Object.entries(own as Readonly<Record<string, Option<unknown>>>).map(([key, { secret }]) => ({
      path: `${section}.${key}`,
      value: isTable(table[section]) ? table[section][key] : undefined,
      isSecret: secret,
    })),
  );
  return [...ofSections, ...keysOfBlocks(table)]
    .filter(
      ({ path, value, isSecret }) =>
        isSecret && !ADDRESS.test(path) && typeof value === 'string' && value !== '' && !value.startsWith(REFERENCE),
    )
    .map(({ path }) => ({ key: path, line: lineOf(path) }));
}

/** The place in the file. For a secret in an environment variable it includes the name of the variable. */
function placeIn(file: string | null, line: number | null, value: unknown): string {
  const reference = typeof value === 'string' && value.startsWith(REFERENCE) ? value.slice(REFERENCE.length) : null;
  const place = `${file ?? 'file'}${line === null ? '' : `:${line}`}`;
  return reference === null ? place : `${place}, environment variable ${reference}`;
}

/** The user and password of a URL are secret in every option. */
const USER_OF_URL = /^(\w+:\/\/)[^/?#]*@/;

function explain(secret: boolean, value: unknown): Pick<ExplainedOption, 'value' | 'hidden'> {
  if (value === null || value === undefined) return { value: null, hidden: false };
  if (secret) return { value: null, hidden: true };
  // Amounts are written in USD.
  if (typeof value === 'bigint') return { value: formatUsd(value), hidden: false };
  return { value: typeof value === 'string' ? value.replace(USER_OF_URL, '$1…@') : value, hidden: false };
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
