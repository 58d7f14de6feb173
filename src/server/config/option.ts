import { formatUsd, MoneyError, parseUsd, type MicroUsd } from '#billing/amounts';
import { show, WrongValue } from './problem.ts';

/**
 * One option: its sources, its format and its meaning. The tables of options are the only schema of the configuration.
 * Types, parsing, messages and the tables of docs/reference/configuration.md are derived from them.
 */
export interface Option<T> {
  /** The environment variable that overrides the file. null if no variable does. */
  readonly env: string | null;
  readonly takes: string;
  /** The default as the documentation shows it. null if the option is required. */
  readonly defaultText: string | null;
  /**
   * The default. Not used if `defaultText` is null. undefined if the default is derived from other options of the
   * table.
   */
  readonly fallback: T;
  /** The default of a development gateway, if it differs. */
  readonly inDevelopment?: T;
  /** The default of a production gateway lets people without a key see or do something. Default false. */
  readonly isOpen?: true;
  /** The value of a secret may be `std::env::NAME`, and is never shown. */
  readonly secret: boolean;
  /** The file may only name the variable of the secret, and not have the secret itself. Default false. */
  readonly onlyReference?: true;
  readonly meaning: string;
  /** Converts a value of the file to a value of the configuration. Throws WrongValue. */
  readonly read: (value: unknown) => T;
  /** Converts text from the environment or a flag to the value that the file would have. */
  readonly fromText: (text: string) => unknown;
}

/** A table with keys that the file chooses. All values are of one kind. */
export interface TableOption<T> extends Omit<Option<Readonly<Record<string, T>>>, 'read' | 'fromText'> {
  readonly entries: Entries<T>;
}

interface Entries<T> {
  readonly fault: (key: string) => string | null;
  readonly value: Option<T>;
  readonly max: number;
}

/** The options of one table by their keys. A dot in a key means a nested table. */
export type OptionTable = Readonly<Record<string, Option<unknown> | TableOption<unknown>>>;

export type ValueOf<O> =
  O extends TableOption<infer T> ? Readonly<Record<string, T>> : O extends Option<infer T> ? T : never;

export type ValuesOf<O extends OptionTable> = { readonly [K in keyof O]: ValueOf<O[K]> };

interface Described {
  readonly takes: string;
  readonly meaning: string;
  readonly secret?: boolean;
}

interface Default<T> {
  /** The default as the documentation shows it. */
  readonly text: string;
  readonly fallback: T;
}

interface Common {
  readonly env?: string;
  readonly meaning: string;
}

/** An option of any kind. Without `optional` it is required. */
export function option<T>(
  options: Described & {
    readonly onlyReference?: true;
    readonly env?: string | undefined;
    readonly optional?: Default<T> & { readonly inDevelopment?: T };
    readonly read: (value: unknown) => T;
    readonly fromText?: (text: string) => unknown;
  },
): Option<T> {
  const { env = null, optional, secret = false, fromText = (text) => text, ...rest } = options;
  const { text: defaultText = null, fallback, ...more } = optional ?? {};
  return { env, defaultText, fallback: fallback as T, secret, fromText, ...more, ...rest };
}

/** A table with keys that the file chooses. Without `optional` it is required. */
export function tableOption<T>({
  optional,
  secret = false,
  ...rest
}: Described & { readonly optional?: 'none'; readonly entries: Entries<T> }): TableOption<T> {
  return { env: null, defaultText: optional ?? null, fallback: {}, secret, ...rest };
}

/** The option as one whose default is open to strangers: docs/run/start-a-gateway.md lists each. */
export const openToStrangers = <T>(closed: Option<T>): Option<T> => ({ ...closed, isOpen: true });

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export function whole(
  options: Common & { readonly min: number; readonly max: number; readonly default: number },
): Option<number> {
  const { env, min, max, meaning } = options;
  const takes = `whole number, ${min} to ${max}`;
  return option({
    env,
    takes,
    meaning,
    optional: { text: String(options.default), fallback: options.default },
    read: (value) => {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
        throw new WrongValue(`is ${show(value)}`, `a ${takes}`);
      return value;
    },
    fromText: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  });
}

/** An optional whole number between two bounds. null if it is absent. */
export function optionalWhole(options: {
  readonly min: number;
  readonly max: number;
  readonly absent: string;
  readonly meaning: string;
  /** The accepted format, if it is not the default text with both bounds. */
  readonly takes?: string;
}): Option<number | null> {
  const { absent: text, ...rest } = options;
  const { takes, read } = whole({ ...rest, default: options.min });
  return option<number | null>({ takes, ...rest, optional: { text, fallback: null }, read });
}

export function trueOrFalse<T extends boolean | null = boolean>(options: {
  readonly optional: Default<NoInfer<T>> & { readonly inDevelopment?: NoInfer<T> };
  readonly meaning: string;
}): Option<T | boolean> {
  return option<T | boolean>({
    takes: '`true` or `false`',
    ...options,
    read: (value) => {
      if (typeof value !== 'boolean') throw new WrongValue(`is ${show(value)}`, 'true or false');
      return value;
    },
  });
}

export function choice<const W extends string>(
  options: Common & {
    readonly values: readonly W[];
    readonly default: NoInfer<W>;
    readonly inDevelopment?: NoInfer<W>;
    /** Converts a text of the environment that may be something else than one of the words. */
    readonly fromText?: (text: string) => string;
  },
): Option<W> {
  const { env, values, default: fallback, inDevelopment, meaning, fromText = (text) => text } = options;
  return option<W>({
    env,
    takes: `one of ${values.map((word) => `\`${word}\``).join(', ')}`,
    meaning,
    optional:
      inDevelopment === undefined
        ? { text: fallback, fallback }
        : { text: `\`${fallback}\`; \`${inDevelopment}\` in development`, fallback, inDevelopment },
    fromText,
    read: (value) => {
      const word = values.find((one) => one === value);
      if (word === undefined) throw new WrongValue(`is ${show(value)}`, `one of ${values.join(', ')}`);
      return word;
    },
  });
}

interface Checked extends Common {
  readonly takes: string;
  /** Returns the fault of a value. null for a valid value. */
  readonly fault: (value: string) => string | null;
}

export function text(options: Checked & { readonly default: string }): Option<string> {
  const { default: fallback, ...rest } = options;
  return option({ ...rest, optional: { text: fallback, fallback }, read: (value) => readChecked(value, options) });
}

/**
 * Optional text with a check. null if it is absent. With `secret`, messages do not contain the value. `normal` converts
 * the value to its stored form.
 */
export function optionalText(
  options: Checked & {
    readonly absent: string;
    readonly secret?: boolean;
    readonly normal?: (value: string) => string;
  },
): Option<string | null> {
  const { absent, normal = (value) => value, ...rest } = options;
  return option<string | null>({
    ...rest,
    optional: { text: absent, fallback: null },
    read: (value) => normal(readChecked(value, options)),
  });
}

function readChecked(
  value: unknown,
  { takes, fault, secret = false }: Pick<Checked, 'takes' | 'fault'> & { readonly secret?: boolean },
): string {
  if (typeof value !== 'string') throw new WrongValue(secret ? 'is not text' : `is ${show(value)}`, takes);
  const wrong = fault(value);
  if (wrong === null) return value;
  throw new WrongValue(secret || hasCredentials(value) ? wrong : `is ${show(value)}: it ${wrong}`, takes);
}

/** Whether a text may be a URL with a user or a password, also if it is not a valid one. */
const hasCredentials = (value: string): boolean => {
  const at = value.indexOf('://');
  return at !== -1 && value.includes('@', at);
};

/** A list of texts with a check. Duplicates are removed. In the environment the texts are separated by commas. */
export function textList(options: Checked & { readonly max: number }): Option<readonly string[]> {
  const { max, ...rest } = options;
  return option<readonly string[]>({
    ...rest,
    optional: { text: '[]', fallback: [] },
    read: (value) => {
      if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, rest.takes);
      if (value.length > max) throw new WrongValue(`has ${value.length} entries`, `at most ${max}`);
      for (const one of value as readonly unknown[]) {
        if (typeof one !== 'string') throw new WrongValue(`has ${show(one)}`, rest.takes);
        const fault = rest.fault(one);
        if (fault !== null) throw new WrongValue(`has ${show(one)}: it ${fault}`, rest.takes);
      }
      return [...new Set(value as string[])];
    },
    fromText: commaSeparated,
  });
}

export const commaSeparated = (list: string): readonly string[] =>
  list
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/**
 * Returns the fault of a URL that must have one of these schemes. null for a valid URL. The text does not repeat the
 * URL, which may contain a password.
 */
export function urlFault(value: string, schemes: readonly string[]): string | null {
  const url = URL.parse(value);
  if (!url) return 'is not a URL';
  if (!schemes.includes(url.protocol)) return `is not a ${schemes.map((scheme) => `${scheme}//`).join(' or ')} URL`;
  try {
    decodeURIComponent(`${url.username}:${url.password}`);
    return null;
  } catch {
    return 'has a user or password that is not percent-encoded';
  }
}

/**
 * An option for an amount of USD between two bounds. The file has a number or text, which is parsed exactly. `min`,
 * `max`, `default` and the value are in micro-USD.
 */
export function usd(options: {
  readonly min: MicroUsd;
  readonly max: MicroUsd;
  readonly default: MicroUsd;
  readonly meaning: string;
}): Option<MicroUsd> {
  const { min, max, meaning } = options;
  const takes = `USD, ${formatUsd(min)} to ${formatUsd(max)}`;
  return option({
    takes,
    meaning,
    optional: { text: formatUsd(options.default), fallback: options.default },
    read: (value) => {
      let amount: MicroUsd;
      try {
        amount = parseUsd(typeof value === 'bigint' ? String(value) : value, 'it');
      } catch (error) {
        if (!(error instanceof MoneyError)) throw error;
        throw new WrongValue(`is ${show(value)}: ${error.message}`, takes);
      }
      if (amount < min || amount > max) throw new WrongValue(`is ${show(value)}`, takes);
      return amount;
    },
  });
}

type Camel<K> = K extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : K;

/** A table of the file with keys in camel case: `fee_bps` becomes `feeBps`. */
export type CamelKeys<T> = { readonly [K in keyof T as Camel<K & string>]: T[K] };

export const camelKeys = <T extends object>(table: T): CamelKeys<T> =>
  Object.fromEntries(Object.entries(table).map(([key, value]) => [camelKey(key), value])) as CamelKeys<T>;

export const camelKey = (key: string): string =>
  key.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
