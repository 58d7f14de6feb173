import { BOUNDS, foreignObject } from '#wire';
import { failedByItsOwnWords, malformed, tooLarge, WholeHeadReader } from '#wire/replies';
import type { Cut, ProviderFlag, ReplyEnd, ReplyReader } from '#gateway';
import { tokensOf } from '../chat/prompt-size.ts';

/** The size of the inputs. */
export interface InputSize {
  /** The most tokens of each input: its bytes, or its number of tokens if the input is tokens. */
  readonly each: readonly number[];
  /** The inputs are tokens. */
  readonly counted: boolean;
}

/** The parts from which a reply is written after its settlement. */
export interface EmbeddingsResult {
  readonly bytes: Buffer;
  /** Places of the members that the gateway replaces, in order. */
  readonly members: readonly Member[];
  /** The `usage` for the client, without its cost. */
  readonly usage: Readonly<Record<string, unknown>>;
}

/** The place of the value of a top-level member in the reply. */
interface Member {
  readonly name: 'usage' | 'model';
  readonly start: number;
  readonly end: number;
}

interface ReaderContext {
  readonly size: InputSize;
  /** The most tokens that are charged: those that were locked, or fewer, see `plausibleTokens`. */
  readonly tokensMax: number;
  readonly replyBytesMax: number;
}

/** The members beside the embeddings are within this many bytes of the start or the end of a reply. */
const EDGE_BYTES = 4096;
const USAGE = /"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/g;
const MODEL = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/g;

/**
 * Reads a reply with embeddings, which pass as they came. Only the edges of the reply are searched, for its usage
 * and the name of its model. Parsing thousands of embeddings would block all streams of the process.
 */
export function createEmbeddingsReader(context: ReaderContext): ReplyReader<EmbeddingsResult | null> {
  return new EmbeddingsReader(context);
}

class EmbeddingsReader extends WholeHeadReader implements ReplyReader<EmbeddingsResult | null> {
  kept = 0;
  readonly #context: ReaderContext;
  readonly #chunks: Uint8Array[] = [];

  constructor(context: ReaderContext) {
    super();
    this.#context = context;
  }

  data(arrived: readonly Uint8Array[]): null {
    const { replyBytesMax } = this.#context;
    for (const chunk of arrived) this.kept += chunk.byteLength;
    this.#chunks.push(...arrived);
    if (this.kept > replyBytesMax) throw tooLarge(`its reply is larger than ${replyBytesMax} bytes`);
    return null;
  }

  end(): ReplyEnd<EmbeddingsResult> {
    const { size, tokensMax } = this.#context;
    const bytes = Buffer.concat(this.#chunks);
    checkReply(bytes);
    const { count, empty } = embeddingsIn(bytes);
    if (empty > 0) throw malformed(`${empty} of the embeddings in its reply are empty`);
    if (count !== size.each.length)
      throw malformed(`its reply has ${count} embeddings, but the request has ${size.each.length} inputs`);
    const members = membersOf(bytes);
    const place = members.find(({ name }) => name === 'usage');
    const claim = place === undefined ? null : parsed(bytes.toString('utf8', place.start, place.end));
    const { prompt, flags } = billedTokens(claim, size, tokensMax);
    const shown = { ...claim, prompt_tokens: prompt, total_tokens: prompt };
    const estimated = flags.includes('usage_missing');
    return {
      usage: { prompt: BigInt(prompt) },
      outcome: 'complete',
      estimated,
      finishReason: 'stop',
      flags,
      result: { bytes, members, usage: estimated ? { ...shown, estimated } : shown },
    };
  }

  /** An incomplete embedding is useless, so it is free. */
  cut({ reason }: Cut): ReplyEnd<null> {
    return { usage: null, outcome: 'free', estimated: false, finishReason: reason, flags: [], result: null };
  }
}

/** Throws UpstreamFailure if the reply is not a list of embeddings. */
function checkReply(bytes: Buffer): void {
  const text = (start: number, end: number) => bytes.toString('latin1', start, end).trim();
  if (!text(0, EDGE_BYTES).startsWith('{') || !text(bytes.length - 64, bytes.length).endsWith('}'))
    throw malformed('its reply is not a JSON object');
  if (bytes.length <= EDGE_BYTES) {
    const reply = parsed(bytes.toString());
    if (reply === null) throw malformed('its reply is not valid JSON');
    if (reply['error']) throw failedByItsOwnWords(reply['error']);
    if (!Array.isArray(reply['data'])) throw malformed('its reply has no data');
  } else if (!/"data"\s*:\s*\[/.test(text(0, EDGE_BYTES))) throw malformed('its reply has no data');
}

const KEY = Buffer.from('"embedding');
const S = 's'.charCodeAt(0);
const QUOTE = '"'.charCodeAt(0);
const COLON = ':'.charCodeAt(0);

/**
 * Counts the embeddings in a reply, and those of them that have no content: its members `embedding`, or `embeddings`,
 * which some models have for an input with several vectors. The reply is searched and not parsed, because that blocks
 * the process for less time.
 */
function embeddingsIn(bytes: Buffer): { readonly count: number; readonly empty: number } {
  let count = 0;
  let empty = 0;
  for (let at = bytes.indexOf(KEY); at !== -1; at = bytes.indexOf(KEY, at)) {
    at += KEY.length;
    if (bytes[at] === S) at++;
    if (bytes[at] !== QUOTE) continue;
    do at++;
    while (isSpace(bytes[at]));
    if (bytes[at] !== COLON) continue;
    count++;
    if (!hasContent(bytes, at + 1)) empty++;
  }
  return { count, empty };
}

const OPENING: ReadonlySet<number | undefined> = new Set(['[', '{'].map((char) => char.charCodeAt(0)));
const CLOSING: ReadonlySet<number | undefined> = new Set([']', '}'].map((char) => char.charCodeAt(0)));

/**
 * Whether the value at `at` is a list or an object with anything in its first element, or a string that is not empty.
 */
function hasContent(bytes: Buffer, at: number): boolean {
  let inside = false;
  for (; isSpace(bytes[at]) || OPENING.has(bytes[at]); at++) if (OPENING.has(bytes[at])) inside = true;
  if (inside) return !CLOSING.has(bytes[at]) && bytes[at] !== undefined;
  return bytes[at] === QUOTE && bytes[at + 1] !== QUOTE;
}

/** White space of JSON. */
const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

const parsed = (text: string) => foreignObject(text, BOUNDS.embeddings);

function membersOf(bytes: Buffer): readonly Member[] {
  const tailAt = Math.max(0, bytes.length - EDGE_BYTES);
  const find = (name: Member['name'], pattern: RegExp): Member[] => {
    for (const from of tailAt === 0 ? [0] : [tailAt, 0]) {
      // In latin1 each byte is one character, so places in the text are places in the bytes.
      const found = [...bytes.toString('latin1', from, from + EDGE_BYTES).matchAll(pattern)].at(-1);
      if (found === undefined) continue;
      const end = from + found.index + found[0].length;
      return [{ name, start: end - found[1]!.length, end }];
    }
    return [];
  };
  return [...find('usage', USAGE), ...find('model', MODEL)].toSorted((one, other) => one.start - other.start);
}

/**
 * The claimed tokens, at most `tokensMax`. Without a claim, input tokens are counted, and texts are measured by
 * their bytes.
 */
function billedTokens(
  claim: Readonly<Record<string, unknown>> | null,
  { each, counted }: InputSize,
  tokensMax: number,
): { readonly prompt: number; readonly flags: readonly ProviderFlag[] } {
  const { prompt_tokens: prompt, total_tokens: total } = claim ?? {};
  const claimed = prompt ?? total;
  if (typeof claimed === 'number' && Number.isSafeInteger(claimed) && claimed >= 0)
    return claimed > tokensMax ? { prompt: tokensMax, flags: ['usage_implausible'] } : { prompt: claimed, flags: [] };
  const sum = each.reduce((all, one) => all + one, 0);
  return { prompt: Math.min(counted ? sum : tokensOf(sum), tokensMax), flags: ['usage_missing'] };
}
