import { show, WrongValue } from './problem.ts';

/**
 * One option: where it can be set, what it takes, what it means. The tables of options are the only schema of the
 * configuration.
 */
export interface Option<T> {
  /** Environment variable that overrides the file; null when there is none. */
  readonly env: string | null;
  /** What may be written, in words, for messages and for the documentation. */
  readonly takes: string;
  /** How the default is written in the documentation; null when the option must be given. */
  readonly defaultText: string | null;
  /** Meaningless when `defaultText` is null. undefined where the default comes from other options of the table. */
  readonly fallback: T;
  /** A secret may be written as `std::env::NAME`, and its value is never shown. */
  readonly secret: boolean;
  readonly meaning: string;
  /** A value of the file as the value of the configuration. Throws WrongValue. */
  readonly read: (value: unknown) => T;
  /** Text of the environment or of a flag as the file would have it. */
  readonly fromText: (text: string) => unknown;
}

/** A table whose keys the file chooses, each with a value of one kind. */
export interface TableOption<T> extends Omit<Option<Readonly<Record<string, T>>>, 'read' | 'fromText'> {
  readonly entries: {
    /** What is wrong with a key, or null. */
    readonly fault: (key: string) => string | null;
    readonly value: Option<T>;
    readonly max: number;
  };
}

/** The options of one table by their keys; a dot stands for a table inside it. */
export type OptionTable = Readonly<Record<string, Option<unknown> | TableOption<unknown>>>;

/** The value type of an option. */
export type ValueOf<O> =
  O extends TableOption<infer T> ? Readonly<Record<string, T>> : O extends Option<infer T> ? T : never;

/** The values of an option table by its keys. */
export type ValuesOf<O extends OptionTable> = { readonly [K in keyof O]: ValueOf<O[K]> };

interface Common {
  readonly env?: string;
  readonly meaning: string;
}

const asIs = (text: string): unknown => text;

/** Any option that the file alone sets. Without `optional` it must be given. */
export function option<T>(options: {
  readonly takes: string;
  readonly meaning: string;
  readonly secret?: boolean;
  readonly optional?: { readonly text: string; readonly fallback: T };
  readonly read: (value: unknown) => T;
}): Option<T> {
  return {
    env: null,
    takes: options.takes,
    defaultText: options.optional?.text ?? null,
    fallback: options.optional?.fallback as T,
    secret: options.secret ?? false,
    meaning: options.meaning,
    read: options.read,
    fromText: asIs,
  };
}

/** A whole number between two bounds. */
export function whole(
  options: Common & { readonly min: number; readonly max: number; readonly default: number },
): Option<number> {
  const { min, max, meaning } = options;
  const takes = `whole number, ${min} to ${max}`;
  return {
    env: options.env ?? null,
    takes,
    defaultText: String(options.default),
    fallback: options.default,
    secret: false,
    meaning,
    read: (value) => {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
        throw new WrongValue(`is ${show(value)}`, `a ${takes}`);
      return value;
    },
    fromText: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  };
}

/** One of a few words. */
export function choice<const W extends string>(
  options: Common & { readonly of: readonly W[]; readonly default: NoInfer<W> },
): Option<W> {
  const takes = options.of.map((word) => `\`${word}\``).join(', ');
  return {
    env: options.env ?? null,
    takes: `one of ${takes}`,
    defaultText: options.default,
    fallback: options.default,
    secret: false,
    meaning: options.meaning,
    read: (value) => {
      const word = options.of.find((one) => one === value);
      if (word === undefined) throw new WrongValue(`is ${show(value)}`, `one of ${options.of.join(', ')}`);
      return word;
    },
    fromText: asIs,
  };
}

/** Text that a check accepts: the check returns what is wrong with it, or null. */
export function text(
  options: Common & {
    readonly takes: string;
    readonly default: string;
    readonly fault: (value: string) => string | null;
  },
): Option<string> {
  return {
    env: options.env ?? null,
    takes: options.takes,
    defaultText: options.default,
    fallback: options.default,
    secret: false,
    meaning: options.meaning,
    read: (value) => {
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, options.takes);
      const fault = options.fault(value);
      if (fault !== null) throw new WrongValue(`is ${show(value)}: it ${fault}`, options.takes);
      return value;
    },
    fromText: asIs,
  };
}

/**
 * Text that may be left out. With `secret`, a fault says what is wrong without the value. `normal` gives the form
 * that is kept.
 */
export function optionalText(
  options: Common & {
    readonly takes: string;
    readonly absent: string;
    readonly secret: boolean;
    readonly fault: (value: string) => string | null;
    readonly normal?: (value: string) => string;
  },
): Option<string | null> {
  return {
    env: options.env ?? null,
    takes: options.takes,
    defaultText: options.absent,
    fallback: null,
    secret: options.secret,
    meaning: options.meaning,
    read: (value) => {
      if (typeof value !== 'string')
        throw new WrongValue(options.secret ? 'is not text' : `is ${show(value)}`, options.takes);
      const fault = options.fault(value);
      if (fault !== null)
        throw new WrongValue(options.secret ? fault : `is ${show(value)}: it ${fault}`, options.takes);
      return options.normal ? options.normal(value) : value;
    },
    fromText: asIs,
  };
}

/** A list of texts that a check accepts, each once; in the environment with commas between. */
export function textList(options: {
  readonly env?: string;
  readonly takes: string;
  readonly meaning: string;
  readonly fault: (value: string) => string | null;
  readonly max: number;
}): Option<readonly string[]> {
  return {
    env: options.env ?? null,
    takes: options.takes,
    defaultText: '[]',
    fallback: [],
    secret: false,
    meaning: options.meaning,
    read: (value) => {
      if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, options.takes);
      if (value.length > options.max) throw new WrongValue(`has ${value.length} entries`, `at most ${options.max}`);
      for (const one of value as readonly unknown[]) {
        if (typeof one !== 'string') throw new WrongValue(`has ${show(one)}`, options.takes);
        const fault = options.fault(one);
        if (fault !== null) throw new WrongValue(`has ${show(one)}: it ${fault}`, options.takes);
      }
      return [...new Set(value as string[])];
    },
    fromText: (all) =>
      all
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== ''),
  };
}

/** What is wrong with a URL of one of these schemes, or null. The value is not repeated: it may hold a password. */
export function urlFault(value: string, schemes: readonly string[]): string | null {
  const url = URL.parse(value);
  if (!url) return 'is not a URL';
  if (!schemes.includes(url.protocol)) return `is not a ${schemes.map((scheme) => `${scheme}//`).join(' or ')} URL`;
  return null;
}
