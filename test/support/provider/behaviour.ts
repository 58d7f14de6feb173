/**
 * How the test provider answers one request. Every field has an honest default; the others are the ways in which
 * real providers fail or lie. Each is also a command `!name`, `!name:value` or `!name:value:value`, in the model's
 * name (`test/model!cut:120`) or as a word of the last user message. Positions are bytes of the response body
 * unless said otherwise; times are milliseconds; `forever` is a time.
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

  /** `!cut:120`: an orderly close of the socket (FIN) after so many bytes of body, all of which arrive. */
  readonly cutAt: number | null;
  /** `!reset:120`: the same by RST; bytes on their way may be lost. */
  readonly resetAt: number | null;
  /** `!cut-head:20`: close after so many bytes of the response head; 0 is before any. */
  readonly cutHeadAt: number | null;
  /** `!stall:120` says nothing more from there on; `!stall:120:500` goes on after 500 ms. */
  readonly stallAt: number | null;
  readonly stallMs: number;
  /** Ends the stall, in place of `stallMs`. */
  readonly stallUntil: Promise<unknown> | null;
  /** `!dribble` sends byte by byte, `!dribble:5` with 5 ms between bytes. */
  readonly dribbleMs: number | null;
  /** `!split:7` cuts the bytes into pieces of random sizes (1 to 48 bytes, blind to events and UTF-8) by this seed. */
  readonly splitSeed: number | null;
  /** `!endless:100000`: after the first token a `data:` line of so many bytes without an end; then the stream ends. */
  readonly endlessLine: number | null;

  /** `!usage:none` and so on: what it claims to have used. */
  readonly usage: UsageClaim;
  /**
   * `!usage-place:finish`: in the chunk with the finish reason, asked or not; `trailing`: in a `choices: []` chunk
   * of its own when the request asked for it.
   */
  readonly usagePlace: 'trailing' | 'finish';
  /** `!finish:beside` and so on: where and what the finish reason is. */
  readonly finish: 'inside' | 'beside' | 'missing' | 'error';
  /** `!tokens:40`: completion tokens it wants to produce for each choice; `max_tokens` bounds it. */
  readonly tokens: number;
  /** `!ignore-max`: as if `max_tokens` were not there. */
  readonly ignoreMax: boolean;
  /** `!error-at:3`: an SSE error event instead of the token with this index, then the end. */
  readonly errorAt: number | null;
  /** `!no-done`: the stream ends without `data: [DONE]`. */
  readonly noDone: boolean;
  /** `!tools:no-index` and so on: defects of tool-call deltas. */
  readonly tools: 'right' | 'no-index' | 'repeat-id';

  /** `!eol:crlf`, `!eol:cr`. */
  readonly lineEnd: 'lf' | 'crlf' | 'cr';
  /** `!bom`: the body begins with a byte order mark. */
  readonly bom: boolean;
  /** `!comments`: comment lines and unknown fields between events. */
  readonly comments: boolean;
  /** `!no-space`: `data:{…}`. */
  readonly noSpace: boolean;
  /** `!multiline`: each event's JSON over several `data:` lines. */
  readonly multiline: boolean;
}

/**
 * Ways to report usage, `true` being the honest one. `twice`: in the finish chunk and in the trailing one. `every`:
 * a running total on each chunk. `nan-literal` is no JSON. In an answer that is not streamed, `twice`, `every` and
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

/** Reads all `!commands` of a text. Throws on one that does not exist: a test that misspells must not pass. */
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
