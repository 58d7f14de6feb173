import { readFileSync, statSync } from 'node:fs';
import { parse, TomlError } from 'smol-toml';
import { printable } from './catalog/names.ts';
import { indexLines } from './config-lines.ts';
import { readModels } from './config-model-blocks.ts';
import { OPTIONS, type OptionKey, type OptionValues } from './config-options.ts';
import { ConfigError, nearest, show } from './config-problem.ts';
import { complain, isTable, lookup, readOutside, readValue, unknownKey, type Environment, type Reading, type Table } from './config-reading.ts';
import type { Config, ServiceConfig } from './config.ts';
import type { Option } from './config-option.ts';

export interface LoadOptions {
  /** Path of the TOML file; null for none. */
  readonly file: string | null;
  /** The file's text where it was read already; `file` then only names it in messages. */
  readonly text?: string;
  readonly env: Environment;
  readonly mode: Config['mode'];
  /** What flags of the command line say, by option key. */
  readonly overrides?: Readonly<Partial<Record<OptionKey, string | number | undefined>>>;
}

const FILE_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Reads the whole configuration: flags over environment over file over defaults. An empty variable counts as absent.
 * Throws ConfigError with everything that is wrong, not only the first thing. What the file says must be right even where it is overridden.
 */
export function loadConfig(options: LoadOptions): Config {
  const text = options.text ?? (options.file === null ? '' : readText(options.file));
  const reading: Reading = { file: options.file, lineOf: indexLines(text), env: options.env, problems: [] };
  const table = parseToml(text, options.file);

  const values = readOptions(table, options, reading);
  const services = readModels(table['models'], reading);
  if (reading.problems.length > 0) throw new ConfigError(reading.problems);
  return freeze(toConfig(options.mode, values as OptionValues, services));
}

function readText(file: string): string {
  const problem = (wrong: string, right: string) => new ConfigError([{ file, line: null, key: 'file', wrong, right }]);
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw problem('is not a file', 'the path of a TOML file');
    if (stats.size > FILE_BYTES_MAX) throw problem(`is larger than ${FILE_BYTES_MAX} bytes`, 'a smaller file');
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw problem(code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`, 'the path of a readable TOML file');
  }
}

function parseToml(text: string, file: string | null): Table {
  try {
    return parse(text, { integersAsBigInt: 'asNeeded', maxDepth: 32 });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The rest of the parser's message quotes the line, which may hold a secret.
    const wrong = error.message.split('\n')[0]!.replace(/^Invalid TOML document: /, '');
    throw new ConfigError([
      { file, line: error.line, key: `column ${error.column}`, wrong: `is not TOML: ${wrong}`, right: 'TOML; see https://toml.io' },
    ]);
  }
}

/** All sections but `[[models]]`. Values that have problems are absent from the result. */
function readOptions(table: Table, options: LoadOptions, reading: Reading): Partial<Record<OptionKey, unknown>> {
  const keys = Object.keys(OPTIONS) as OptionKey[];
  const written = collect(table, keys, reading);
  const values: Partial<Record<OptionKey, unknown>> = {};
  for (const key of keys) {
    const option: Option<unknown> = OPTIONS[key];
    let value: unknown = option.fallback;
    if (written.has(key)) value = readValue(option, written.get(key), key, reading);
    const variable = option.env === null ? undefined : lookup(options.env, option.env);
    const flag = options.overrides?.[key];
    if (flag !== undefined) value = readOutside(option, flag, `flag for ${key}`, reading);
    else if (variable !== undefined) value = readOutside(option, variable, `environment variable ${option.env}`, reading);
    values[key] = value;
  }
  return values;
}

/** What the file writes for the known keys of its sections; what is not known becomes a problem. */
function collect(table: Table, keys: readonly OptionKey[], reading: Reading): Map<OptionKey, unknown> {
  const known = new Set<string>(keys);
  const sections = [...new Set(keys.map((key) => key.split('.')[0]!))];
  const written = new Map<OptionKey, unknown>();
  for (const [section, content] of Object.entries(table)) {
    if (section === 'models') continue;
    if (!sections.includes(section)) unknownSection(section, [...sections, 'models'], keys, reading);
    else if (!isTable(content)) complain(reading, section, `is ${show(content)}`, `a section: [${section}]`);
    else {
      const siblings = keys.filter((key) => key.startsWith(`${section}.`)).map((key) => key.slice(section.length + 1));
      for (const [key, value] of Object.entries(content)) {
        const path = `${section}.${key}`;
        if (known.has(path)) written.set(path as OptionKey, value);
        else unknownKey(path, key, siblings, reading);
      }
    }
  }
  return written;
}

function unknownSection(section: string, sections: readonly string[], keys: readonly OptionKey[], reading: Reading): void {
  const path = printable(section, 64);
  if (section === 'router')
    return complain(reading, path, 'is for the provider proxy', 'a file with [[models]] only; the gateway does not dial a router');
  const home = keys.find((key) => key.split('.')[1] === section);
  if (home) return complain(reading, path, 'is not an option here', `put it below [${home.split('.')[0]}]`);
  const guess = nearest(section, sections);
  complain(reading, path, 'is not a section', guess ? `did you mean [${guess}]?` : `one of ${sections.join(', ')}`);
}

function toConfig(mode: Config['mode'], values: OptionValues, services: readonly ServiceConfig[]): Config {
  return {
    mode,
    host: values['server.host'],
    port: values['server.port'],
    dataDir: values['server.data_dir'],
    databaseUrl: values['database.url'],
    redisUrl: values['redis.url'],
    adminKey: values['server.admin_key'],
    identitySeed: values['server.identity_seed'],
    logLevel: values['server.log_level'],
    otlpEndpoint: values['telemetry.otlp_endpoint'],
    limits: {
      requestsPerMinute: values['limits.requests_per_minute'],
      burst: values['limits.burst'],
      developmentRequestsPerMinute: values['limits.development_requests_per_minute'],
      tokensPerMinute: values['limits.tokens_per_minute'],
      chatBodyBytesMax: values['limits.chat_body_bytes_max'],
      bodyBytesMax: values['limits.body_bytes_max'],
      messagesMax: values['limits.messages_max'],
      jsonDepthMax: values['limits.json_depth_max'],
      jsonKeysMax: values['limits.json_keys_max'],
      requestTimeoutMs: values['limits.request_timeout_ms'],
      clientStallMs: values['limits.client_stall_ms'],
      drainOnShutdownMs: values['limits.drain_on_shutdown_ms'],
    },
    billing: {
      feeBps: values['billing.fee_bps'],
      drainMs: values['billing.drain_ms'],
      drainBytes: values['billing.drain_bytes'],
      sweepMs: values['billing.sweep_ms'],
      receipts: values['billing.receipts'],
    },
    upstream: {
      headTimeoutMs: values['upstream.head_timeout_ms'],
      idleTimeoutMs: values['upstream.idle_timeout_ms'],
      callTimeoutMs: values['upstream.call_timeout_ms'],
      attemptsMax: values['upstream.attempts_max'],
      replyBytesMax: values['upstream.reply_bytes_max'],
      connectionsMax: values['upstream.connections_max'],
      cooldownMs: values['upstream.cooldown_ms'],
    },
    services,
  };
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}
