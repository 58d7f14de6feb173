import { dirname } from 'node:path';
import { printable } from '#wire';
import { BLOCK_TABLES, readBlocks } from './blocks/blocks.ts';
import { camelKeys } from './camel-keys.ts';
import { readChains } from './chain-blocks.ts';
import { toConfig, type Config, type Mode } from './config.ts';
import { freeze } from './freeze.ts';
import { indexLines } from './lines.ts';
import type { Option } from './option.ts';
import { SECTIONS, type OptionKey, type OptionValues } from './options.ts';
import { ConfigError, nearest, show } from './problem.ts';
import { complain, isTable, lookup, readOutside, type Environment, type Reading, type Table } from './reading.ts';
import { readTable } from './table.ts';
import { parseToml, readTomlFile } from './toml.ts';

export interface LoadOptions {
  /** Path of the TOML file. null without one. */
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
  /** Values of command-line flags, by option key. */
  readonly overrides?: Readonly<Partial<Record<OptionKey, string | number | undefined>>>;
}

const BLOCKS_MAX = 10_000;
/** Tables of the file that are not sections of options. */
const BLOCKS: readonly string[] = [...BLOCK_TABLES, 'chains'];

/**
 * Reads the whole configuration. Precedence: flags, environment, file, defaults. An empty variable counts as absent. A
 * value of the file must be valid even if it is overridden. Throws ConfigError with all problems.
 */
export function loadConfig(options: LoadOptions): Config {
  const text = options.text ?? (options.file === null ? '' : readTomlFile(options.file));
  const { file, env, placeOnly = false } = options;
  const reading: Reading = { file, lineOf: indexLines(text), env, problems: [], placeOnly };
  const table = parseToml(text, options.file);

  const values = readSections(table, options, reading);
  if (!placeOnly) refuseKeylessStore(values.media, reading);
  refuseNarrowStore(values.media, reading);
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
  const place = { commands: false, directory: dirname(options.file ?? '.') };
  const chains = readChains(table['chains'], place.directory, reading);
  const services = readBlocks(table, place, { max: BLOCKS_MAX, oneProvider: false }, reading);
  if (reading.problems.length > 0) throw new ConfigError(reading.problems);
  return freeze(toConfig(options.mode, values, chains, services));
}

/** The values of all sections. Invalid values are absent from the result. */
export function readSections(file: Table, options: LoadOptions, reading: Reading): OptionValues {
  for (const section of Object.keys(file))
    if (!BLOCKS.includes(section) && !Object.hasOwn(SECTIONS, section)) unknownSection(section, reading);
  const sections = Object.entries(SECTIONS).map(([section, table]) => {
    const written = file[section] ?? {};
    if (!isTable(written)) complain(reading, section, `is ${show(written)}`, `a section: [${section}]`);
    return [section, camelKeys(readSection(isTable(written) ? written : {}, section, table, options, reading))];
  });
  return camelKeys(Object.fromEntries(sections) as object) as OptionValues;
}

/** Complains about an S3 store without its keys. Invalid values are undefined here, and so cause no second problem. */
function refuseKeylessStore(media: OptionValues['media'], reading: Reading): void {
  const { s3Url, s3AccessKeyId, s3SecretAccessKey } = media;
  for (const [key, value, wanted] of [
    ['s3_access_key_id', s3AccessKeyId, 'the access key of the bucket'],
    ['s3_secret_access_key', s3SecretAccessKey, 'the secret of that access key'],
  ] as const)
    if (typeof s3Url === 'string' && value === null)
      complain(reading, `media.${key}`, 'is missing: media.s3_url is given', wanted);
}

/** Complains about a limit of stored files below that of one file: no video would ever fit. */
function refuseNarrowStore({ fileBytesMax, ...limits }: OptionValues['media'], reading: Reading): void {
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

/** The values of one section. Precedence: flags, environment, file, defaults. */
function readSection(
  written: Table,
  section: string,
  table: Readonly<Record<string, Option<unknown>>>,
  options: LoadOptions,
  reading: Reading,
): Readonly<Record<string, unknown>> {
  const values = { ...readTable(written, section, table, reading).values };
  for (const [key, option] of Object.entries(table)) {
    if (options.mode === 'development' && option.inDevelopment !== undefined && !Object.hasOwn(written, key))
      values[key] = option.inDevelopment;
    const { flag, variable } = givenOutside(section, key, option, options);
    if (flag !== undefined) values[key] = readOutside(option, flag, flagOf(key), reading);
    else if (variable !== undefined)
      values[key] = readOutside(option, variable, `environment variable ${option.env}`, reading);
  }
  return values;
}

/** The values of an option that override the file. A flag overrides a variable. */
export function givenOutside(
  section: string,
  key: string,
  option: Option<unknown>,
  { env, overrides }: Pick<LoadOptions, 'env' | 'overrides'>,
) {
  return {
    flag: overrides?.[`${section}.${key}` as OptionKey],
    variable: option.env === null ? undefined : lookup(env, option.env),
  };
}

export const flagOf = (key: string) => `--${key === 'data_dir' ? 'data' : key.replaceAll('_', '-')}`;

function unknownSection(section: string, reading: Reading): void {
  const sections = [...Object.keys(SECTIONS), ...BLOCKS];
  const path = printable(section, 64);
  if (section === 'router')
    return complain(reading, path, 'is for the provider proxy', 'the blocks alone; the gateway does not dial a router');
  const home = Object.entries(SECTIONS).find(([, options]) => Object.hasOwn(options, section))?.[0];
  if (home !== undefined) return complain(reading, path, 'is not an option here', `put it below [${home}]`);
  const guess = nearest(section, sections);
  complain(reading, path, 'is not a section', guess ? `did you mean [${guess}]?` : `one of ${sections.join(', ')}`);
}
