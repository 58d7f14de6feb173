import { BOUNDS as JSON_BOUNDS, foreignObject, type JsonObject } from '#wire';
/** The request fields that can cap completion tokens. `none` means that the provider takes no cap. */
export const CAP_NAMES = ['max_tokens', 'max_completion_tokens', 'none'] as const;

export type CapName = (typeof CAP_NAMES)[number];

/** The request fields that can carry a cap. */
export type CapField = Exclude<CapName, 'none'>;

/**
 * The reason why a provider refused a cap. `name`: the provider does not know this field; `instead` is the field that
 * it recommends. `bound`: the provider allows at most `tokens`; `lasting` is false if the bound holds for this prompt
 * only.
 */
type CapRefusal =
  | { readonly kind: 'name'; readonly instead: CapField | null }
  | { readonly kind: 'bound'; readonly tokens: number; readonly lasting: boolean };

/** Only the beginning is read, because longer texts repeat the request. */
const WORDS_MAX = 1_000;

/** The prefix that a proxy puts before the provider's message: `litellm.BadRequestError: OpenAIException - …`. */
const PREFIX = String.raw`^(?:[\w.]{1,40}(?:Error|Exception)[:\s-]{1,3}){0,3}`;
/** Matches only the complete field name, not the beginning of a longer name. */
const FIELD = String.raw`['"\x60]?(max_tokens|max_completion_tokens)(?!\w|[.[]\w)['"\x60]?`;
const words = (pattern: string) => new RegExp(PREFIX + pattern, 'i');

/*
 * All patterns are anchored at the beginning of the message. Later parts may repeat text of the consumer, and a
 * consumer must not be able to make the gateway believe something about a provider. Providers also repeat field names
 * at the beginning. So the code that learns from a refusal checks that the request does not contain such words.
 */
const UNKNOWN_NAME: readonly RegExp[] = [
  words(`Unsupported parameter: ${FIELD}`),
  words(`Unknown parameter: ${FIELD}`),
  words(`Unrecognized (?:request )?(?:argument|parameter)s?(?: supplied)?: ${FIELD}`),
  words(`${FIELD}:? (?:is not (?:supported|allowed|permitted)|extra inputs are not permitted)`),
];
const INSTEAD = new RegExp(`Use ${FIELD} instead`, 'i');

interface BoundPattern {
  readonly pattern: RegExp;
  readonly tokens: (groups: Readonly<Record<string, string>>) => number;
  readonly lasting: boolean;
}

/** The group `given` is the refused cap. */
const BOUNDS: readonly BoundPattern[] = [
  {
    pattern: words(`${FIELD} is too large: (?<given>\\d+)\\. .{0,80}?at most (?<most>\\d+) completion tokens`),
    tokens: ({ most }) => Number(most),
    lasting: true,
  },
  {
    pattern: words(`Invalid ${FIELD} value, the valid range of max_\\w+ is \\[1, ?(?<most>\\d+)\\]`),
    tokens: ({ most }) => Number(most),
    lasting: true,
  },
  {
    pattern: words(`${FIELD}(?: for [^ ]{1,80})? must be less than or equal to [\`']?(?<most>\\d+)`),
    tokens: ({ most }) => Number(most),
    lasting: true,
  },
  {
    pattern: words(
      `(?:Invalid|The parameter) ${FIELD}.{0,60}integer above maximum value[.,:] expected a value <= (?<most>\\d+), but got (?<given>\\d+)`,
    ),
    tokens: ({ most }) => Number(most),
    lasting: true,
  },
  {
    pattern: words(`${FIELD}: (?<given>\\d+) > (?<most>\\d+), which is the maximum allowed`),
    tokens: ({ most }) => Number(most),
    lasting: true,
  },
  {
    pattern: words(
      'Unable to submit request because it has a maxOutputTokens value of (?<given>\\d+) but the supported range is from 1 \\(inclusive\\) to (?<end>\\d+) \\(exclusive\\)',
    ),
    tokens: ({ end }) => Number(end) - 1,
    lasting: true,
  },
  {
    pattern: words(
      "This model's maximum context length is (?<context>\\d+) tokens\\. However, you requested \\d+ tokens \\((?<prompt>\\d+) in the messages",
    ),
    tokens: ({ context, prompt }) => Number(context) - Number(prompt),
    lasting: false,
  },
  {
    // This server stops counting when the prompt is too long for the cap, so the real prompt may be longer. Half of the
    // rest may fit.
    pattern: words(
      "This model's maximum context length is (?<context>\\d+) tokens\\. However, you requested (?<given>\\d+) output tokens and your prompt contains (?:at least )?(?<prompt>\\d+) input tokens",
    ),
    tokens: ({ context, prompt }) => Math.floor((Number(context) - Number(prompt)) / 2),
    lasting: false,
  },
  {
    pattern: words(
      "'?max_tokens'?(?: or '?max_completion_tokens'?)? is too large: (?<given>\\d+)\\. ?This model's maximum context length is (?<context>\\d+) tokens and your request has (?<prompt>\\d+) input tokens",
    ),
    tokens: ({ context, prompt }) => Number(context) - Number(prompt),
    lasting: false,
  },
];

/** Reads an error response as a refusal of `cap`, which was sent as `field`; null if it refuses something else. */
export function readCapRefusal(status: number, body: Uint8Array, field: CapField, cap: number): CapRefusal | null {
  if (status !== 400 && status !== 422) return null;
  const answer = foreignObject(body, JSON_BOUNDS.providerError);
  if (answer === null) return null;
  for (const text of wordsOf(answer)) {
    const refusal = readWords(text.slice(0, WORDS_MAX), field, cap);
    if (refusal !== undefined) return refusal;
  }
  return fromDetail(answer['detail'], field, cap);
}

/** Characters at the beginning of an error that are the provider's own. Later text may be of the consumer. */
const BEGINNING = 120;
const UNKNOWN =
  /unknown|unrecogni[sz]ed|unsupported|unexpected|forbidden|extra|not (?:be )?(?:permitted|supported|allowed)/i;

/**
 * Whether an error response names a field of the request. `unknown`: its beginning says that the provider does not know
 * the field. `field`: a path with dots, whose members count alone, too.
 */
export function readFieldRefusal(status: number, body: Uint8Array, field: string): 'unknown' | 'named' | null {
  if (status !== 400 && status !== 422) return null;
  const answer = foreignObject(body, JSON_BOUNDS.providerError);
  const texts = answer === null ? [Buffer.from(body.subarray(0, WORDS_MAX)).toString()] : textsOf(answer);
  const names = new RegExp([field.replaceAll('.', '\\.'), ...field.split('.')].map(namePattern).join('|'), 'i');
  const naming = texts.map((text) => text.slice(0, WORDS_MAX)).filter((text) => names.test(text));
  if (naming.length === 0) return null;
  const begins = naming.map((text) => text.slice(0, BEGINNING));
  return begins.some((text) => names.test(text) && UNKNOWN.test(text)) ? 'unknown' : 'named';
}

/** The texts of an error, each with the name that stands beside it. */
function textsOf(answer: JsonObject): readonly string[] {
  const { error, detail } = answer;
  const { message, param } = (error ?? {}) as JsonObject;
  const pairs = Array.isArray(detail)
    ? (detail.slice(0, 16) as readonly (JsonObject | null)[]).map((item) => [pathIn(item?.['loc']), item?.['msg']])
    : [[param, message]];
  return [...pairs, [error], [answer['message']], [detail]]
    .map((texts) => texts.filter((text) => typeof text === 'string' && text !== '').join(': '))
    .filter((text) => text !== '');
}

const pathIn = (loc: unknown): string => (Array.isArray(loc) ? loc.slice(0, 16).join('.') : '');

/** A name that is also a word of the language counts in quotes or beside a colon. A longer path is another field. */
function namePattern(name: string): string {
  if (!name.includes('_')) return `["'\x60:] ?${name}(?![\\w.])|(?<![\\w\\\\])${name}["'\x60:]`;
  return `(?<!\\w)${name.replaceAll('_', '[_ ]?')}(?!\\w|[.[]\\w)`;
}

/** undefined if the text is about something else. */
function readWords(text: string, field: CapField, cap: number): CapRefusal | null | undefined {
  if (UNKNOWN_NAME.some((pattern) => pattern.exec(text)?.[1] === field)) {
    const instead = INSTEAD.exec(text)?.[1] as CapField | undefined;
    return { kind: 'name', instead: instead === field ? null : (instead ?? null) };
  }
  for (const { pattern, tokens, lasting } of BOUNDS) {
    const groups = pattern.exec(text)?.groups;
    if (groups === undefined) continue;
    return boundOf(
      groups['given'] === undefined || Number(groups['given']) === cap ? tokens(groups) : NaN,
      cap,
      lasting,
    );
  }
  return undefined;
}

function boundOf(tokens: number, cap: number, lasting: boolean): CapRefusal | null {
  return Number.isSafeInteger(tokens) && tokens >= 1 && tokens < cap ? { kind: 'bound', tokens, lasting } : null;
}

/** The texts that may contain the provider's error message. Some providers put it into `param`. */
function wordsOf(answer: JsonObject): readonly string[] {
  const { error } = answer;
  const { message, param } = (error ?? {}) as JsonObject;
  return [error, message, param, answer['message'], answer['detail']].filter((value) => typeof value === 'string');
}

/** The errors of a FastAPI server name the field in `loc`, whose last element is the field itself. */
function fromDetail(detail: unknown, field: CapField, cap: number): CapRefusal | null {
  if (!Array.isArray(detail)) return null;
  for (const item of detail.slice(0, 16) as readonly (JsonObject | null)[]) {
    const { loc, type, ctx } = item ?? {};
    if (!Array.isArray(loc) || loc.at(-1) !== field) continue;
    if (type === 'extra_forbidden') return { kind: 'name', instead: null };
    if (type === 'less_than_equal') return boundOf(Number((ctx as JsonObject | undefined)?.['le']), cap, true);
  }
  return null;
}
