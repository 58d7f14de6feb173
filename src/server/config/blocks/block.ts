import { SERVICE_NAME_MAX, UNPRINTABLE } from '#security';
import {
  type OptionTable,
  type ValuesOf,
  option,
  textList,
  urlFault,
  type Option,
  trueOrFalse,
  optionalWhole,
} from '../option.ts';
import type { Table } from '../toml.ts';
import { displayNameFault, providerNameFault, serviceNameFault } from '../names.ts';
import { show, WrongValue } from '../problem.ts';
import {
  alwaysWritten,
  field,
  fieldsOf,
  flagField,
  mergeFields,
  writtenOf,
  type FieldsOf,
  type KeysWithoutField,
  type ConfigValue,
} from './field.ts';
import type { OfferCost } from './price-tiers.ts';

/** Reports a problem of a block as a whole, at one of its keys. */
type Complain = (key: string, wrong: string, right: string) => void;

/** The file that contains a block. */
export interface BlockFile {
  /**
   * Whether commands are allowed. A gateway reaches services only by address. A provider's proxy also runs commands.
   */
  readonly commands: boolean;
  /** The directory for relative paths in the file. */
  readonly directory: string;
  /** Whether the packages that a block names must be there: false for commands that call no service. */
  readonly packages: boolean;
}

/**
 * One kind of block, for services of type `S` that run at a target of type `T`. Its keys are in two tables. `offer`
 * describes the service and its prices, and is also part of a registration. `target` says where the service runs, and
 * never leaves the machine that reads the file. The functions get values that are valid by themselves, and complain
 * about invalid combinations.
 */
export interface BlockKind<P extends string, S, T> {
  readonly primitive: P;
  readonly offer: OptionTable;
  readonly target: OptionTable;
  toService(values: Readonly<Record<string, unknown>>, complain: Complain): S;
  toTarget(values: Readonly<Record<string, unknown>>, complain: Complain, place: BlockFile): T;
  /** The inverse of toService: the `offer` part of a block for this service. Prices are decimal strings. */
  toBlock(service: S): Table;
}

export type ServiceOf<K> = K extends { toService(...args: never): infer S } ? S : never;

type Made<P extends string, O extends OptionTable, C> = Flat<{ readonly primitive: P } & FieldsOf<O> & C>;

/** The same fields and groups without `&`, as editors and the compiler show them best. */
type Flat<T> = { [K in keyof T]: FlatGroup<T[K]> };
type FlatGroup<T> = { [K in keyof T]: T[K] };

/**
 * Defines a kind of block. The type of its services, the reading and the writing follow from the rows of `offer`, see
 * field.ts. An option whose row sets no field is read by `combine` and written by `separate`. The types are erased only
 * here, so that all kinds fit into one list.
 */
export function defineBlock<
  const P extends string,
  O extends OptionTable,
  T extends OptionTable,
  C extends object,
  W,
>(kind: {
  readonly primitive: P;
  readonly offer: O;
  readonly target: T;
  /** Complains about options that contradict each other. */
  check(values: ValuesOf<O>, complain: Complain): void;
  /** The fields that are made of several options, or that all services of this kind have alike. */
  combine(values: ValuesOf<O>): C;
  /** The inverse of combine: the options that have no field of their own. undefined leaves an option out. */
  separate(service: Made<P, O, C>): { readonly [K in KeysWithoutField<O>]: ConfigValue | undefined };
  /** Options that a registration has after the others of their table. The documentation has the order of `offer`. */
  readonly writtenLast: readonly (keyof O & string)[];
  toTarget(values: ValuesOf<T>, complain: Complain, place: BlockFile): W;
}): BlockKind<P, Made<P, O, C>, W> {
  const last: readonly string[] = kind.writtenLast;
  const rank = (key: string) => (key.includes('.') ? 2 : 0) + (last.includes(key) ? 1 : 0);
  const keys = Object.keys(kind.offer).toSorted((one, other) => rank(one) - rank(other));
  return {
    primitive: kind.primitive,
    offer: kind.offer,
    target: kind.target,
    toService(values, complain) {
      const typed = values as ValuesOf<O>;
      kind.check(typed, complain);
      const parts = [{ primitive: kind.primitive }, fieldsOf(kind.offer, typed) as object, kind.combine(typed)];
      return mergeFields(parts) as Made<P, O, C>;
    },
    toTarget: (values, complain, place) => kind.toTarget(values as ValuesOf<T>, complain, place),
    toBlock: (service) => nested(keys, { ...writtenOf(kind.offer, service), ...kind.separate(service) }),
  };
}

/** A table with these values in the order of `keys`. A dot in a key means a nested table. */
function nested(keys: readonly string[], values: Readonly<Record<string, ConfigValue | undefined>>): Table {
  const table: Record<string, ConfigValue> = {};
  const inner: Record<string, Record<string, ConfigValue>> = {};
  for (const path of keys) {
    const value = values[path];
    if (value === undefined) continue;
    const [name = '', key] = path.split('.');
    if (key === undefined) table[name] = value;
    else (inner[name] ??= {})[key] = value;
  }
  return { ...table, ...inner };
}

const DESCRIPTION_MAX = 2_000;

function checkedText(takes: string, meaning: string, fault: (value: string) => string | null): Option<string> {
  return option({ takes, meaning, read: (value) => readText(value, takes, fault) });
}

/** Text that completeBlock can derive from the rest of its block. Otherwise it is required. */
function derivedText(
  from: string,
  takes: string,
  meaning: string,
  fault: (value: string) => string | null,
): Option<string> {
  return { ...checkedText(takes, meaning, fault), defaultText: from };
}

export function optionalCheckedText(
  takes: string,
  meaning: string,
  fallback: string,
  fault: (value: string) => string | null,
): Option<string> {
  return option({
    takes,
    meaning,
    optional: { text: fallback, fallback },
    read: (value) => readText(value, takes, fault),
  });
}

function readText(value: unknown, takes: string, fault: (value: string) => string | null): string {
  if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}: it must be text`, takes);
  const wrong = fault(value);
  if (wrong !== null) throw new WrongValue(`is ${show(value)}: it ${wrong}`, takes);
  return value;
}

export const COMMON_OPTIONS = {
  name: field(
    'name',
    checkedText(
      `1 to ${SERVICE_NAME_MAX} characters of A-Z a-z 0-9 . _ / : -`,
      'Name that consumers call the service by. Providers that offer the same name compete for its calls.',
      serviceNameFault,
    ),
  ),
  display_name: field(
    'displayName',
    derivedText(
      'the `name`',
      '1 to 200 printable characters',
      'Name that people read. It should include the name of the provider.',
      displayNameFault,
    ),
  ),
  provider_name: field(
    'providerName',
    derivedText(
      'the part of `name` before the first `/`',
      '1 to 64 characters of A-Z a-z 0-9 space . _ -',
      "Name of the provider of the service. In a gateway's own file, the provider's id (a public key) and its earnings account are derived from this name.",
      providerNameFault,
    ),
  ),
  description: field(
    'description',
    option({
      takes: `text of at most ${DESCRIPTION_MAX} printable characters, in one or more lines`,
      meaning: 'What the service does, for people and for agents that choose a tool.',
      optional: { text: 'none', fallback: '' },
      read: (value) => {
        const right = `text of at most ${DESCRIPTION_MAX} printable characters`;
        if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, right);
        if (value.length > DESCRIPTION_MAX * 2) throw new WrongValue(`has ${value.length} characters`, right);
        const text = value.replaceAll('\r\n', '\n').trim();
        if (text.length > DESCRIPTION_MAX) throw new WrongValue(`has ${text.length} characters`, right);
        if (UNPRINTABLE.test(text.replaceAll('\n', ' ')))
          throw new WrongValue('has control or text-direction characters', right);
        return text;
      },
    }),
  ),
};

export const UPSTREAM_MODEL = checkedText(
  'text of 1 to 256 printable characters',
  'Name of the model at the upstream API.',
  (value) =>
    value.length === 0 || value.length > 256 || UNPRINTABLE.test(value)
      ? 'must be 1 to 256 printable characters'
      : null,
);

export function words(
  values: readonly string[],
  fallback: readonly string[],
  meaning: string,
): Option<readonly string[]> {
  const right = `a list with one or more of ${values.join(', ')}, such as ${JSON.stringify(values.slice(0, 2))}`;
  const { read } = textList({
    takes: right,
    meaning,
    max: 100,
    fault: (one) => (values.includes(one) ? null : 'is not in this list'),
  });
  return option<readonly string[]>({
    takes: `list of ${values.map((one) => `\`${one}\``).join(', ')}`,
    meaning,
    optional: { text: JSON.stringify(fallback), fallback },
    read: (value) => {
      if (Array.isArray(value) && value.length === 0) throw new WrongValue('is an empty list', right);
      return read(value);
    },
  });
}

const KEY_RIGHT = '"std::env::NAME" to read it from an environment variable, or "" if no key is needed';

function readKey(value: unknown): string | null {
  if (typeof value !== 'string') throw new WrongValue('is not text', KEY_RIGHT);
  if (!/^[!-~]{0,4096}$/.test(value))
    throw new WrongValue(
      'contains characters that a header cannot carry, or is longer than 4096 characters',
      KEY_RIGHT,
    );
  return value === '' ? null : value;
}

export function bearerKey(meaning: string): Option<string | null> {
  return option<string | null>({
    takes: 'text, `std::env::NAME`, or "" for none',
    meaning,
    secret: true,
    optional: { text: 'none', fallback: null },
    read: readKey,
  });
}

/**
 * The options for the base address and key of an upstream API of models or media. `endpoint` is the path below the base
 * address.
 */
export const apiOptions = (endpoint: string) => ({
  'params.api_base': field('url', apiBase(endpoint)),
  'params.api_key': field('apiKey', bearerKey('Key for the upstream API, sent as a bearer token.')),
});

/** The place where a service runs that is reached by HTTP. `apiKey` is a secret, sent as a bearer token. */
export type HttpTarget = { readonly kind: 'http' } & FieldsOf<ReturnType<typeof apiOptions>> & {
    /** Consumers may use their own keys here. Only of models in a gateway's own file. */
    readonly ownKeys?: true;
    /** The API takes batches, in OpenAI's form. Only of models in a gateway's own file. */
    readonly batches?: true;
    /** The rates that the vendor charges the operator. Only of services in a gateway's own file. */
    readonly cost?: OfferCost;
    readonly timeouts?: ReplyTimeouts;
  };

/** Longest waits for a reply, in milliseconds; null for the gateway's own. Only of services in a gateway's own file. */
export interface ReplyTimeouts {
  readonly headMs: number | null;
  /** For the first event of a stream. */
  readonly firstEventMs: number | null;
}

const TIMEOUT_MS_MAX = 3_600_000;

/** The result of a late reply of each kind. A tool, an agent and a job may have acted, so no other is asked. */
const WHEN_LATE = {
  model: 'Then the next provider is asked.',
  'image model': 'Then the next provider is asked.',
  tool: 'Then the call fails, because the tool may have acted.',
  agent: 'Then the call fails, because the agent may have acted.',
  'video model': 'Then the call fails, because the job may have begun.',
} as const;

const FIRST_EVENT: Partial<Record<keyof typeof WHEN_LATE, string>> = {
  model:
    'none; for a model of texts, if another provider or model could answer, 10000, or 60000 if it declares `params.hidden_reasoning_max` or `pricing.internal_reasoning`',
};

export const headTimeout = (kind: keyof typeof WHEN_LATE): Option<number | null> =>
  optionalWhole({
    min: 100,
    max: TIMEOUT_MS_MAX,
    absent: 'that of `upstream.head_timeout_ms`',
    meaning: `Longest wait for the status and headers of a reply of this ${kind}, in place of \`upstream.head_timeout_ms\`. If an answer is not streamed, they come only when the provider has finished. ${WHEN_LATE[kind]} A reload changes it. It has no effect for a provider that dials in.`,
  });

export const firstEventTimeout = (kind: keyof typeof WHEN_LATE): Option<number | null> =>
  optionalWhole({
    min: 100,
    max: TIMEOUT_MS_MAX,
    absent: FIRST_EVENT[kind] ?? 'none',
    meaning: `Longest wait for the first content of a stream of this ${kind}, from the begin of the request. ${WHEN_LATE[kind]} A reload changes it. It has no effect for a provider that dials in.`,
  });

export const withTimeouts = <T extends object>(
  target: T,
  headMs: number | null,
  firstEventMs: number | null = null,
): T & { readonly timeouts?: ReplyTimeouts } =>
  headMs === null && firstEventMs === null ? target : { ...target, timeouts: { headMs, firstEventMs } };

export const toHttpTarget =
  <T extends OptionTable>(options: T) =>
  (values: ValuesOf<T>): { readonly kind: 'http' } & FieldsOf<T> => ({ kind: 'http', ...fieldsOf(options, values) });

/** An address that ends in `endpoint` is refused, because people often copy it with the base address. */
function apiBase(endpoint: string): Option<string> {
  const right = 'the base address of the upstream API, such as https://api.example.com/v1';
  return option({
    takes: 'an http:// or https:// URL',
    meaning: `Base address of the upstream API, to which \`${endpoint}\` is appended. An address without a path gets \`/v1\`: \`https://api.example.com\` and \`https://api.example.com/v1/\` are the same.`,
    read: (value) => {
      const url = readUrl(value, right, 'params.api_key');
      if (!url.path.endsWith(endpoint)) return `${url.origin}${url.path || '/v1'}`;
      throw new WrongValue(
        `is ${show(value)}`,
        `the address up to ${endpoint}: ${url.origin}${url.path.slice(0, -endpoint.length)}`,
      );
    },
  });
}

/**
 * Reads the URL of a server: http or https, without credentials, query and fragment. `path` has no trailing slashes.
 * Throws WrongValue.
 */
export function readUrl(
  value: unknown,
  right: string,
  key: string,
): { readonly origin: string; readonly path: string } {
  if (typeof value !== 'string' || value.length > 2_048) throw new WrongValue(`is ${show(value)}`, right);
  const url = URL.parse(value);
  const fault = urlFault(value, ['http:', 'https:']);
  // The message does not repeat a URL with credentials.
  if (url && (url.username || url.password))
    throw new WrongValue('contains credentials', `${right}. Put a key into ${key}`);
  if (fault !== null || !url)
    throw new WrongValue(value.includes('@') ? `${fault}` : `is ${show(value)}: it ${fault}`, right);
  if (url.search || url.hash || value.includes('?') || value.includes('#'))
    throw new WrongValue('has a query or a fragment', right);
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') };
}

/**
 * Reads the URL of a server whose requests go to exactly this URL. A trailing slash stays, because many servers
 * redirect `/mcp` to `/mcp/`, or know only one of the two. Throws WrongValue.
 */
export function readEndpoint(value: unknown, right: string): string {
  const { origin, path } = readUrl(value, right, 'api_key');
  return `${origin}${path}${path !== '' && (value as string).endsWith('/') ? '/' : ''}`;
}

const matching = (pattern: RegExp, such: string) => (value: string) =>
  pattern.test(value) ? null : `is not written like ${such}`;

export const MEDIA_OPTIONS = {
  supported_params: alwaysWritten(
    'media.supportedParams',
    textList({
      takes: 'list of field names',
      meaning: 'Request fields that the service uses, such as `seed`.',
      fault: matching(/^[a-z][a-z0-9_]{0,63}$/, 'seed or negative_prompt'),
      max: 100,
    }),
  ),
  aspect_ratios: alwaysWritten(
    'media.aspectRatios',
    textList({
      takes: 'list of ratios such as `16:9`',
      meaning: 'Aspect ratios that the service makes.',
      fault: matching(/^[1-9]\d{0,3}:[1-9]\d{0,3}$/, '16:9'),
      max: 100,
    }),
  ),
  quotes: flagField(
    'media.unquoted',
    trueOrFalse({
      optional: { text: 'true', fallback: true },
      meaning:
        'Whether a quote fixes the price of the service for five minutes. With `false`, a quote shows the price, but does not fix it.',
    }),
    false,
  ),
};
