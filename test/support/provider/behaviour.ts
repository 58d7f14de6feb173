/**
 * How the test provider answers one request. Every default is correct behaviour. All other values imitate failures or
 * lies of real providers. Each field is also a command `!name`, `!name:value` or `!name:value:value`, in the model's
 * name (`test/model!cut:120`) or as a word of the last user message. Positions are bytes of the response body unless
 * stated otherwise. Times are milliseconds. `forever` is a valid time.
 */
export interface Behaviour {
  /** `!head-delay:250`: silence before the response head. */
  readonly headDelayMs: number;
  /** `!token-ms:20`: silence before each token of a stream. */
  readonly tokenMs: number;
  /** `!status:503` answers an error; `!status:500:garbage` chooses its body. */
  readonly status: number;
  readonly errorBody: 'json' | 'garbage' | 'html' | 'empty';
  /** `!retry-after:7`, in seconds. */
  readonly retryAfterS: number | null;

  /** `!cut:120`: closes the socket normally (FIN) after this many bytes of the body. All of them are delivered. */
  readonly cutAt: number | null;
  /** `!reset:120`: the same with RST. Bytes on their way may be lost. */
  readonly resetAt: number | null;
  /** `!cut-head:20`: closes after this many bytes of the response head. 0 is before the first one. */
  readonly cutHeadAt: number | null;
  /** `!stall:120` sends nothing more from there on. `!stall:120:500` continues after 500 ms. */
  readonly stallAt: number | null;
  readonly stallMs: number;
  /** Ends the stall, instead of `stallMs`. */
  readonly stallUntil: Promise<unknown> | null;
  /** `!dribble` sends byte by byte, `!dribble:5` with 5 ms between bytes. */
  readonly dribbleMs: number | null;
  /**
   * `!split:7` splits the bytes into pieces of random sizes (1 to 48 bytes, without regard to events and UTF-8) with
   * this seed.
   */
  readonly splitSeed: number | null;
  /**
   * `!endless:100000`: after the first token, sends a `data:` line of this many bytes without a line end. Then the
   * stream ends.
   */
  readonly endlessLine: number | null;

  /** `!usage:none` and so on: the usage that it reports. */
  readonly usage: UsageClaim;
  /**
   * `!usage-place:finish`: the usage is in the chunk with the finish reason, whether it was requested or not.
   * `trailing`: in a separate chunk with `choices: []`, if the request asks for it.
   */
  readonly usagePlace: 'trailing' | 'finish';
  /** `!finish:beside` and so on: the place and the value of the finish reason. */
  readonly finish: 'inside' | 'beside' | 'missing' | 'error';
  /** `!tokens:40`: the number of completion tokens per choice. `max_tokens` limits it. */
  readonly tokens: number;
  /** `!ignore-max`: ignores `max_tokens`. */
  readonly ignoreMax: boolean;
  /** `!error-at:3`: sends an SSE error event instead of the token with this index. Then the stream ends. */
  readonly errorAt: number | null;
  /** `!no-done`: the stream ends without `data: [DONE]`. */
  readonly noDone: boolean;
  /** `!tools:no-index` and so on: errors in the deltas of tool calls. */
  readonly tools: 'right' | 'no-index' | 'repeat-id';

  /** `!eol:crlf`, `!eol:cr`. */
  readonly lineEnd: 'lf' | 'crlf' | 'cr';
  /** `!bom`: the body begins with a byte order mark. */
  readonly bom: boolean;
  /** `!comments`: adds comment lines and unknown fields between events. */
  readonly comments: boolean;
  /** `!no-space`: `data:{…}`. */
  readonly noSpace: boolean;
  /** `!multiline`: splits each event's JSON into several `data:` lines. */
  readonly multiline: boolean;
}

/**
 * Ways to report usage. `true` is correct. `twice`: in the finish chunk and in the trailing chunk. `every`: a running
 * total in each chunk. `nan-literal` isn't valid JSON. In an answer that isn't streamed, `twice`, `every` and
 * `after-done` are the same as `true`.
 */
export const USAGE_CLAIMS = [
  'true',
  'none',
  'null',
  'empty',
  'zero',
  'x1000',
  'huge',
  'negative',
  'fraction',
  'strings',
  'nan',
  'nan-literal',
  'no-total',
  'wrong-total',
  'twice',
  'every',
  'after-done',
] as const;
export type UsageClaim = (typeof USAGE_CLAIMS)[number];

export const HONEST: Behaviour = {
  headDelayMs: 0,
  tokenMs: 0,
  status: 200,
  errorBody: 'json',
  retryAfterS: null,
  cutAt: null,
  resetAt: null,
  cutHeadAt: null,
  stallAt: null,
  stallMs: Infinity,
  stallUntil: null,
  dribbleMs: null,
  splitSeed: null,
  endlessLine: null,
  usage: 'true',
  usagePlace: 'trailing',
  finish: 'inside',
  tokens: 12,
  ignoreMax: false,
  errorAt: null,
  noDone: false,
  tools: 'right',
  lineEnd: 'lf',
  bom: false,
  comments: false,
  noSpace: false,
  multiline: false,
};

export type Instruction = Partial<Behaviour>;

/** Reads all `!commands` of a text. Throws for an unknown command, so that a test with a misspelt command fails. */
export function parseCommands(text: string): Instruction {
  let instruction: Instruction = {};
  for (const match of text.matchAll(/!([a-z][a-z-]*)((?::[^\s!:]+)*)/g)) {
    const [, name = '', values = ''] = match;
    instruction = { ...instruction, ...parseCommand(name, values.split(':').slice(1)) };
  }
  return instruction;
}

function parseCommand(name: string, [first, second]: readonly string[]): Instruction {
  switch (name) {
    case 'head-delay':
      return { headDelayMs: milliseconds(first) };
    case 'token-ms':
      return { tokenMs: milliseconds(first) };
    case 'status':
      return { status: count(first), errorBody: oneOf(second ?? 'json', ['json', 'garbage', 'html', 'empty']) };
    case 'retry-after':
      return { retryAfterS: count(first) };
    case 'cut':
      return { cutAt: count(first) };
    case 'reset':
      return { resetAt: count(first) };
    case 'cut-head':
      return { cutHeadAt: count(first) };
    case 'stall':
      return { stallAt: count(first), stallMs: milliseconds(second ?? 'forever') };
    case 'dribble':
      return { dribbleMs: milliseconds(first ?? '0') };
    case 'split':
      return { splitSeed: count(first) };
    case 'endless':
      return { endlessLine: count(first) };
    case 'usage':
      return { usage: oneOf(first, USAGE_CLAIMS) };
    case 'usage-place':
      return { usagePlace: oneOf(first, ['trailing', 'finish']) };
    case 'finish':
      return { finish: oneOf(first, ['inside', 'beside', 'missing', 'error']) };
    case 'tokens':
      return { tokens: count(first) };
    case 'ignore-max':
      return { ignoreMax: true };
    case 'error-at':
      return { errorAt: count(first) };
    case 'no-done':
      return { noDone: true };
    case 'tools':
      return { tools: oneOf(first, ['right', 'no-index', 'repeat-id']) };
    case 'eol':
      return { lineEnd: oneOf(first, ['lf', 'crlf', 'cr']) };
    case 'bom':
      return { bom: true };
    case 'comments':
      return { comments: true };
    case 'no-space':
      return { noSpace: true };
    case 'multiline':
      return { multiline: true };
    default:
      throw new Error(`the test provider knows no command !${name}`);
  }
}

function count(value: string | undefined): number {
  const number = Number(value);
  if (value === undefined || !Number.isSafeInteger(number) || number < 0) throw new Error(`${value} is not a count`);
  return number;
}

function milliseconds(value: string | undefined): number {
  return value === 'forever' ? Infinity : count(value);
}

function oneOf<const T extends string>(value: string | undefined, values: readonly T[]): T {
  const found = values.find((candidate) => candidate === value);
  if (found === undefined) throw new Error(`${value} is not one of ${values.join(', ')}`);
  return found;
}
