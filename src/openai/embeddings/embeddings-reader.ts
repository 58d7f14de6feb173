import { BOUNDS, foreignObject } from '#wire';
import { failedByItsOwnWords, isError, lastObjectIn, malformed, tooLarge, WholeHeadReader } from '#wire/replies';
import { type Cut, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import { flagBeyond, NO_FLAGS, type RaisedFlag } from '#call/flags';
import { tokensOf } from '../chat/request/prompt-size.ts';
import { EMBEDDING_BYTES_MAX, type EmbeddingForm, EmbeddingForms } from './embedding-forms.ts';

export interface InputSize {
  /** The most tokens of each input: its bytes, or its number of tokens if the input is tokens. */
  readonly each: readonly number[];
  /** The inputs are tokens. */
  readonly counted: boolean;
}

/** The parts from which a reply, or the end of a large one, is written after its settlement. */
export interface EmbeddingsResult {
  readonly bytes: Buffer;
  /** Places of the members that the gateway replaces, in order. */
  readonly members: readonly ReplyMember[];
  /** The members that went out before, because the reply is large. */
  readonly memberNames: ReadonlySet<ReplyMember['name']>;
  /** The `usage` for the client, without its cost. */
  readonly usage: Readonly<Record<string, unknown>>;
}

interface ReplyMember {
  readonly name: 'usage' | 'model';
  readonly start: number;
  readonly end: number;
}

interface EmbeddingsReaderContext {
  readonly size: InputSize;
  readonly form: EmbeddingForm;
  /** The most tokens that are charged: those that were locked, or fewer, see `plausibleTokens`. */
  readonly tokensMax: number;
  /** A larger reply passes as it comes, or is given up. */
  readonly replyBytesMax: number;
  /** The name of the model for a reply that passes as it comes; null if no reply does. */
  readonly passesAs: string | null;
}

/** The members beside the embeddings are within this many bytes of the start or the end of a reply. */
const EDGE_BYTES = 4096;
const USAGE = /"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/g;
const MODEL = /"model"\s*:\s*("(?:[^"\\]|\\.)*")/g;

/**
 * Reads a reply with embeddings, which pass in the form that their client asked for. Only the edges of the reply are
 * searched for its usage and the name of its model. Parsing thousands of embeddings would block all streams of the
 * process.
 */
export function createEmbeddingsReader(context: EmbeddingsReaderContext): ReplyReader<EmbeddingsResult | null> {
  return new EmbeddingsReader(context);
}

class EmbeddingsReader extends WholeHeadReader implements ReplyReader<EmbeddingsResult | null> {
  storedBytes = 0;
  readonly #context: EmbeddingsReaderContext;
  readonly #forms: EmbeddingForms;
  #received = 0;
  #chunks: Uint8Array[] = [];
  #keptOfChunks = 0;
  /** The members in the first bytes of a reply that passes as it comes, once a part of it went out. */
  #passed: { readonly head: readonly ReplyMember[]; readonly claim: Claim | null } | null = null;

  constructor(context: EmbeddingsReaderContext) {
    super();
    this.#context = context;
    this.#forms = new EmbeddingForms(context.form);
  }

  data(arrived: readonly Uint8Array[]): Uint8Array | null {
    const { replyBytesMax, passesAs, size } = this.#context;
    for (const chunk of arrived) {
      this.#received += chunk.byteLength;
      const read = this.#forms.push(chunk);
      this.#chunks.push(read);
      this.#keptOfChunks += read.byteLength;
    }
    this.storedBytes = this.#keptOfChunks + this.#forms.openBytes;
    if (this.#passed === null && this.storedBytes <= replyBytesMax) return null;
    if (passesAs === null) throw tooLarge(`its reply is larger than ${replyBytesMax} bytes`);
    const bytesMax = replyBytesMax + size.each.length * EMBEDDING_BYTES_MAX;
    if (this.#received > bytesMax) throw tooLarge(`its reply is larger than ${bytesMax} bytes`);
    return this.#pass(passesAs);
  }

  end(): ReplyEnd<EmbeddingsResult> {
    const { size, tokensMax } = this.#context;
    const bytes = this.#all();
    const passed = this.#passed;
    if (passed === null) checkReply(bytes);
    else if (!endsObject(bytes)) throw malformed('its reply is not a JSON object');
    const { count, empty } = this.#forms;
    if (empty > 0) throw malformed(`${empty} of the embeddings in its reply are empty`);
    if (count !== size.each.length)
      throw malformed(`its reply has ${count} embeddings, but the request has ${size.each.length} inputs`);
    const members = membersOf(bytes);
    const { prompt, flags } = billedTokens(claimAt(bytes, members) ?? passed?.claim ?? null, size, tokensMax);
    const shownUsage = { ...claimAt(bytes, members), prompt_tokens: prompt, total_tokens: prompt };
    const estimated = flags.includes('usage_missing');
    return {
      usage: { prompt: BigInt(prompt) },
      outcome: 'complete',
      estimated,
      finishReason: 'stop',
      flags,
      result: {
        bytes,
        members,
        memberNames: new Set(passed?.head.map(({ name }) => name)),
        usage: estimated ? { ...shownUsage, estimated } : shownUsage,
      },
    };
  }

  /** An incomplete reply is useless, but who has got nearly all of it has the embeddings. */
  cut(cut: Cut): ReplyEnd<null> {
    const { size, tokensMax } = this.#context;
    const used = (claim: Claim | null) => {
      const { prompt, flags } = billedTokens(claim, size, tokensMax);
      return { usage: { prompt: BigInt(prompt) }, isReported: !flags.includes('usage_missing') };
    };
    const { usage, isReported } = used(lastObjectIn(this.#all(), 'usage', cut.rest));
    const came = this.#passed !== null;
    return undeliveredEnd(cut, { reported: isReported ? usage : null, input: used(null).usage, came }, null);
  }

  #all(): Buffer {
    return Buffer.concat([...this.#chunks, this.#forms.rest]);
  }

  /** All but the last bytes, which may be in the end of the reply. */
  #pass(service: string): Uint8Array | null {
    const bytes = Buffer.concat(this.#chunks);
    const until = bytes.length - EDGE_BYTES;
    if (until <= 0) return null;
    this.#keptOfChunks = EDGE_BYTES;
    this.storedBytes = EDGE_BYTES + this.#forms.openBytes;
    this.#chunks = [bytes.subarray(until)];
    if (this.#passed !== null) return bytes.subarray(0, until);
    checkHead(bytes);
    const head = membersIn(bytes, 0);
    this.#passed = { head, claim: claimAt(bytes, head) };
    const model = head.find(({ name }) => name === 'model');
    if (model === undefined) return bytes.subarray(0, until);
    return Buffer.concat([
      bytes.subarray(0, model.start),
      Buffer.from(JSON.stringify(service)),
      bytes.subarray(model.end, until),
    ]);
  }
}

type Claim = Readonly<Record<string, unknown>>;

function claimAt(bytes: Buffer, members: readonly ReplyMember[]): Claim | null {
  const place = members.find(({ name }) => name === 'usage');
  return place === undefined ? null : parsed(bytes.toString('utf8', place.start, place.end));
}

const latin1 = (bytes: Buffer, start: number, end: number): string => bytes.toString('latin1', start, end).trim();
const endsObject = (bytes: Buffer): boolean => latin1(bytes, bytes.length - 64, bytes.length).endsWith('}');

/** Throws UpstreamFailure if the reply is not a list of embeddings. */
function checkReply(bytes: Buffer): void {
  if (!endsObject(bytes)) throw malformed('its reply is not a JSON object');
  if (bytes.length <= EDGE_BYTES) {
    const reply = parsed(bytes.toString());
    if (reply === null) throw malformed('its reply is not valid JSON');
    if (isError(reply['error'])) throw failedByItsOwnWords(reply['error']);
    if (!Array.isArray(reply['data'])) throw malformed('its reply has no data');
  } else checkHead(bytes);
}

/** Throws UpstreamFailure if a large reply does not begin as a list of embeddings. */
function checkHead(bytes: Buffer): void {
  const text = latin1(bytes, 0, EDGE_BYTES);
  if (!text.startsWith('{')) throw malformed('its reply is not a JSON object');
  if (!/"data"\s*:\s*\[/.test(text)) throw malformed('its reply has no data');
}

const parsed = (text: string) => foreignObject(text, BOUNDS.embeddings);

function membersOf(bytes: Buffer): readonly ReplyMember[] {
  const tailAt = Math.max(0, bytes.length - EDGE_BYTES);
  const atEnd = membersIn(bytes, tailAt);
  const atStart = tailAt === 0 ? [] : membersIn(bytes, 0).filter(({ name }) => !atEnd.some((one) => one.name === name));
  return [...atStart, ...atEnd];
}

function membersIn(bytes: Buffer, from: number): readonly ReplyMember[] {
  // In latin1 each byte is one character, so places in the text are places in the bytes.
  const text = bytes.toString('latin1', from, from + EDGE_BYTES);
  const find = (name: ReplyMember['name'], pattern: RegExp): ReplyMember[] => {
    const match = [...text.matchAll(pattern)].at(-1);
    if (match === undefined) return [];
    const end = from + match.index + match[0].length;
    return [{ name, start: end - match[1]!.length, end }];
  };
  return [...find('usage', USAGE), ...find('model', MODEL)].toSorted((one, other) => one.start - other.start);
}

/**
 * The claimed tokens, at most `tokensMax`. Without a claim, input tokens are counted, and texts are measured by
 * their bytes. Every input has a token, so a claim of none is no claim.
 */
function billedTokens(
  claim: Readonly<Record<string, unknown>> | null,
  { each, counted }: InputSize,
  tokensMax: number,
): { readonly prompt: number; readonly flags: readonly RaisedFlag[] } {
  const { prompt_tokens: prompt, total_tokens: total } = claim ?? {};
  const sum = each.reduce((all, one) => all + one, 0);
  const claimed = prompt || total;
  if (typeof claimed === 'number' && Number.isSafeInteger(claimed) && claimed >= Math.min(sum, 1))
    return { prompt: Math.min(claimed, tokensMax), flags: flagBeyond(NO_FLAGS, 'prompt', claimed, tokensMax) };
  return { prompt: Math.min(counted ? sum : tokensOf(sum), tokensMax), flags: ['usage_missing'] };
}
