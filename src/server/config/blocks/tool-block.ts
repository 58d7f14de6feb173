import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { formatUsd, type MicroUsd, type Rates } from '#billing/amounts';
import { isPrototypeName } from '../names.ts';
import { option, optionalWhole, tableOption, trueOrFalse, type Option } from '../option.ts';
import { show, WrongValue } from '../problem.ts';
import { REFERENCE } from '../reading.ts';
import {
  bearerKey,
  COMMON_OPTIONS,
  defineBlock,
  headTimeout,
  readEndpoint,
  withTimeouts,
  type HttpTarget,
} from './block.ts';
import { defaultedField, field, fieldsOf, type FieldsOf } from './field.ts';
import { CALL_PRICE, callCost, checkCap, COSTS_BY_USE, perUnitByName, price, PRICES_BY_USE, rate } from './price.ts';
import { callsCost } from './price-tiers.ts';

const TOOLS_MAX = 1_000;
const TEXT_MAX = 4_096;
const ENTRIES_MAX = 256;

const TOOL_NAME = /^(?!.*\.\.)[A-Za-z0-9._/-]{1,128}$/;

const toolNameFault = (name: string) =>
  TOOL_NAME.test(name) && !isPrototypeName(name)
    ? null
    : 'must be the name of a tool, 1 to 128 characters of A-Z a-z 0-9 . _ / -';

type ToolPrices = Readonly<Record<string, MicroUsd>>;

interface PricesOfTools {
  readonly variants: Readonly<Record<string, Rates>>;
}

const offer = {
  ...COMMON_OPTIONS,
  'pricing.per_call': rate(CALL_PRICE),
  ...PRICES_BY_USE,
  'pricing.per_call_max': field(
    'priceCap',
    callCost(
      'Largest cost of one call, which is locked before it. Required with `per_second`, `prompt` or `completion`, whose use the tool reports in its result.',
      { text: 'none', fallback: null },
    ),
    formatUsd,
  ),
  'pricing.tools': {
    ...tableOption({
      takes: 'table of tool names with USD per call',
      optional: 'none',
      meaning: 'Prices of single tools whose price differs from `per_call`.',
      entries: { fault: toolNameFault, value: price(CALL_PRICE), max: TOOLS_MAX },
    }),
    toFields: (prices: ToolPrices): PricesOfTools => ({
      variants: Object.fromEntries(Object.entries(prices).map(([name, call]) => [name, { call }])),
    }),
    toValue: ({ variants }: PricesOfTools): ToolPrices =>
      Object.fromEntries(Object.entries(variants).map(([name, { call = 0n }]) => [name, call])),
    write: perUnitByName,
  },
};

/**
 * Reads a text for the start of a process. Messages do not repeat it, because people write secrets into commands.
 * Throws WrongValue.
 */
function readArgument(value: unknown, right: string): string {
  if (typeof value !== 'string' || value.length > TEXT_MAX || value.includes('\0'))
    throw new WrongValue('is not text that a command can take', right);
  return value;
}

const SESSIONS_MAX = 16;
const SESSION_IDLE_MS = 300_000;

/**
 * A flag whose default is false. Its value is null if it is absent, because a block without a command must not have it.
 */
const flag = (meaning: string): Option<boolean | null> =>
  trueOrFalse<null>({ meaning, optional: { text: 'false', fallback: null } });

const addressOptions = {
  api_key: field('apiKey', bearerKey('Key for the `endpoint`, sent as a bearer token.')),
};

const commandOptions = {
  args: field(
    'args',
    option<readonly string[]>({
      takes: 'list of texts',
      meaning: 'Arguments of `command`.',
      optional: { text: '[]', fallback: [] },
      read: (value) => {
        const right = `a list of at most ${ENTRIES_MAX} texts, such as ["-y", "@acme/mcp-server"]`;
        if (!Array.isArray(value)) throw new WrongValue(`is ${show(value)}`, right);
        if (value.length > ENTRIES_MAX) throw new WrongValue(`has ${value.length} entries`, right);
        const args = value.map((one) => readArgument(one, right));
        if (args.some((one) => one.startsWith(REFERENCE)))
          throw new WrongValue(
            'names an environment variable',
            'the secret in env instead, because other users of the machine can read the arguments',
          );
        return args;
      },
    }),
  ),
  env: field(
    'env',
    tableOption({
      takes: 'table of names with text or `std::env::NAME`',
      optional: 'none',
      secret: true,
      meaning: 'Environment variables of `command`, in addition to those that every program needs.',
      entries: {
        fault: (name) =>
          /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name) ? null : 'must be the name of an environment variable',
        max: ENTRIES_MAX,
        value: option({
          takes: 'text or `std::env::NAME`',
          meaning: '',
          secret: true,
          read: (value) => readArgument(value, `text of at most ${TEXT_MAX} characters, or "std::env::NAME"`),
        }),
      },
    }),
  ),
  cwd: field(
    'cwd',
    option<string | null>({
      takes: 'path of a directory',
      meaning: 'Working directory of `command`. A relative path starts at the directory of the file.',
      optional: { text: 'that of the proxy', fallback: null },
      read: (value) => {
        const cwd = readArgument(value, 'the path of a directory');
        if (cwd === '') throw new WrongValue('is empty', 'the path of a directory');
        return cwd;
      },
    }),
  ),
  shared: defaultedField(
    'shared',
    flag(
      'Whether one process of `command` serves all consumers, for servers that keep no state between calls. Otherwise, each session of a server with ' +
        'sessions has a process of its own.',
    ),
    false,
  ),
  sessions_max: defaultedField(
    'sessionsMax',
    optionalWhole({
      min: 1,
      max: 1_000,
      absent: String(SESSIONS_MAX),
      meaning: 'Largest number of sessions of `command` at the same time.',
    }),
    SESSIONS_MAX,
  ),
  session_idle_ms: defaultedField(
    'sessionIdleMs',
    optionalWhole({
      min: 1_000,
      max: 86_400_000,
      absent: String(SESSION_IDLE_MS),
      meaning: 'How long a session of `command` lasts without a call or an open stream.',
    }),
    SESSION_IDLE_MS,
  ),
  roots: defaultedField(
    'roots',
    flag(
      'Whether consumers may tell `command` which directories to work in. These are directories of this machine, and some servers use them ' +
        'instead of those that `args` allow.',
    ),
    false,
  ),
};

const target = {
  endpoint: option<string | null>({
    takes: 'an http:// or https:// URL',
    meaning:
      'Address of an MCP server that speaks HTTP. Requests go to exactly this address: many servers know only one of `/mcp` and `/mcp/`, and redirects are not followed. Give this or `command`.',
    optional: { text: 'none', fallback: null },
    read: (value) => readEndpoint(value, 'the address of an MCP server, such as https://mcp.example.com/mcp'),
  }),
  ...addressOptions,
  cost: callsCost(
    { per_call: CALL_PRICE, ...COSTS_BY_USE },
    { bounds: CALL_PRICE, takes: 'tool names', fault: toolNameFault, max: TOOLS_MAX },
  ),
  head_timeout_ms: headTimeout('tool'),
  command: option<string | null>({
    takes: 'name or path of a program',
    meaning:
      'MCP server that speaks over its standard input and output. The proxy runs it, without a shell. Only for `tollgate provide`.',
    optional: { text: 'none', fallback: null },
    read: (value) => {
      const right = 'only the name or path of a program, such as "npx". Put its arguments into args';
      const command = readArgument(value, right);
      if (command.trim() === '') throw new WrongValue('is empty', right);
      return command;
    },
  }),
  ...commandOptions,
};

/** An MCP server that speaks over its standard input and output. `env` may contain secrets. */
export type CommandTarget = { readonly kind: 'command'; readonly command: string } & FieldsOf<typeof commandOptions>;

type ToolTarget = CommandTarget | HttpTarget;

/** `[[tools]]`: an MCP server, at an address or as a program. */
export const TOOL_BLOCK = defineBlock({
  primitive: 'tool',
  offer,
  target,
  check: checkCap,
  combine: () => ({}),
  separate: () => ({}),
  writtenLast: [],
  toTarget(values, complain, place): ToolTarget {
    const { endpoint, api_key: apiKey, head_timeout_ms: headMs, command, cost } = values;
    if (endpoint === null && command === null)
      complain('endpoint', 'is missing', 'endpoint with the address of an MCP server, or command');
    if (command !== null && !place.commands)
      complain('command', 'is a program, which a gateway does not run', 'run it behind `tollgate provide`');
    else if (endpoint !== null && command !== null) complain('command', 'stands beside endpoint', 'one of the two');
    if (command === null) {
      for (const [key, { fallback }] of Object.entries(commandOptions))
        if (!isDeepStrictEqual(values[key as keyof typeof commandOptions], fallback))
          complain(key, 'is given without command', 'leave it out, or add command');
    } else if (endpoint === null && apiKey !== null)
      complain('api_key', 'is given without endpoint', 'leave it out: keys for the command go into env');
    if (command !== null && headMs !== null)
      complain('head_timeout_ms', 'is given without endpoint', 'leave it out: it is for servers at an address');
    if (command === null)
      return withTimeouts(
        {
          kind: 'http' as const,
          url: endpoint ?? '',
          ...fieldsOf(addressOptions, values),
          ...(cost === null ? {} : { cost }),
        },
        headMs,
      );
    const fields = fieldsOf(commandOptions, values);
    const cwd = fields.cwd === null ? null : resolve(place.directory, fields.cwd);
    return { kind: 'command', command, ...fields, cwd };
  },
});
