import { inTurns, isObject } from '#wire';
import {
  bytesOfString,
  createReplyBytes,
  failedByItsOwnWords,
  isError,
  HeadReader,
  malformed,
  outlineInTurns,
  parseReplyObject,
  BOUNDS,
  type ReplyBytes,
  textOfString,
  tooLarge,
} from '#wire/replies';
import type { Usage } from '#billing/amounts';
import { type Cut, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import { flagBeyond, NO_FLAGS, type RaisedFlag } from '#call/flags';
import type { SmallWorth } from '../image-price.ts';
import { reportedWords, type WordTokens } from '../image-words.ts';
import { base64Of, checkBase64, type FoundImage, headOf, seedOf, isWholeImage } from '../image-file.ts';

export interface ImagesResult {
  readonly images: readonly FoundImage[];
  /** Members of the provider's reply besides its images. Their texts are short. */
  readonly raw: Readonly<Record<string, unknown>>;
  /** The tokens of words that are charged; absent at an offer without a price for them. */
  readonly words?: bigint;
}

export interface ImageReaderContext {
  /** Images that were asked for and paid for. Further images are not given out. */
  readonly n: number;
  /** Images that were edited. They are charged if at least one image came. */
  readonly inputs: number;
  readonly replyBytesMax: number;
  /** null at an offer without a price for words. */
  readonly words: WordTokens | null;
  /** null if no image is much smaller than ordered. */
  readonly worth: (images: readonly FoundImage[], words: bigint) => SmallWorth | null;
}

/** A larger reply is read in several turns of the event loop. */
const IN_TURNS_BYTES = 1024 * 1024;
/** Faulty items of a reply that are checked in addition to the images that were asked for. Each one costs time. */
const FAULTY_MAX = 16;

/** Parses a reply without its images, or an event of a stream. Throws UpstreamFailure if it is not a JSON object. */
export const parseImageReply = (json: Buffer): Record<string, unknown> => parseReplyObject(json, BOUNDS.image);

/**
 * Reads a reply with images in base64, in the form of OpenAI's API. The images are not parsed, because parsing a
 * reply of 32 MiB would block all streams of the process for 150 ms. Each image that came is one unit of usage.
 */
export function createImageReader(context: ImageReaderContext): ReplyReader<ImagesResult> {
  return new ImageReader(context);
}

class ImageReader extends HeadReader implements ReplyReader<ImagesResult> {
  readonly #context: ImageReaderContext;
  #bytes: ReplyBytes;

  constructor(context: ImageReaderContext) {
    super();
    this.#context = context;
    this.#bytes = createReplyBytes(null, context.replyBytesMax);
  }

  get storedBytes(): number {
    return this.#bytes.length;
  }

  override head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    super.head(status, headers);
    const declared = Number(headers['content-length'] ?? NaN);
    if (Number.isSafeInteger(declared)) this.#bytes = createReplyBytes(declared, this.#context.replyBytesMax);
  }

  data(arrived: readonly Uint8Array[]): null {
    const { replyBytesMax } = this.#context;
    for (const chunk of arrived) this.#bytes.push(chunk);
    if (this.#bytes.length > replyBytesMax) throw tooLarge(`its reply is larger than ${replyBytesMax} bytes`);
    return null;
  }

  endElsewhere(): Promise<ReplyEnd<ImagesResult>> | null {
    return this.#bytes.length > IN_TURNS_BYTES ? inTurns(this.#read()) : null;
  }

  end(): ReplyEnd<ImagesResult> {
    const reading = this.#read();
    for (;;) {
      const { done, value } = reading.next();
      if (done) return value;
    }
  }

  /** An incomplete image cannot be given out. Who makes images bills all that were ordered. */
  cut(cut: Cut): ReplyEnd<ImagesResult> {
    const { n, inputs, words } = this.#context;
    const input = imagesUsed(n, inputs, words?.usual);
    return undeliveredEnd(cut, { reported: null, input }, { images: [], raw: {} });
  }

  #read() {
    return readReply(this.#bytes, this.#context);
  }
}

/** The usage of a call: the images that are made, the images that were edited, and the tokens of its words. */
export const imagesUsed = (count: number, inputs: number, words?: bigint): Usage => ({
  image: BigInt(count),
  ...(words === undefined ? {} : { prompt: words }),
  ...(inputs === 0 ? {} : { input_image: BigInt(inputs) }),
});

/** Yields between pieces of work. Throws UpstreamFailure for a reply without an image. */
function* readReply(
  arrived: ReplyBytes,
  context: ImageReaderContext,
): Generator<void, ReplyEnd<ImagesResult>, undefined> {
  const { n } = context;
  const bytes = yield* arrived.take();
  yield;
  const outline = yield* outlineInTurns(bytes);
  yield;
  const reply = parseImageReply(outline.json);
  const { error } = reply;
  // Another tollgate gateway has the images in `images`.
  const data = reply['data'] ?? reply['images'];
  if (!Array.isArray(data)) {
    if (isError(error)) throw failedByItsOwnWords(error);
    throw malformed('its reply has no data');
  }
  const images: FoundImage[] = [];
  let faulty = 0;
  let cutOff = 0;
  let elsewhere = 0;
  for (const item of data as readonly unknown[]) {
    if (images.length === n || faulty === n + FAULTY_MAX) break;
    const { b64_json: inBase64, data_url: dataUrl, url, seed, revised_prompt: revised } = isObject(item) ? item : {};
    const value = [inBase64, dataUrl, url].find((one) => typeof one === 'string');
    const base64 = typeof value === 'string' ? base64Of(bytesOfString(value, outline)) : null;
    if (base64 !== null && value === url && base64.toString('latin1', 0, 4) === 'http') elsewhere++;
    const head = base64 === null ? null : headOf(base64);
    if (base64 === null || head === null || !(yield* checkBase64(base64))) {
      faulty++;
      continue;
    }
    if (!(yield* isWholeImage(base64, head.format))) {
      faulty++;
      cutOff++;
      continue;
    }
    images.push({
      ...head,
      base64,
      // Some providers tell one seed for the whole reply.
      seed: seedOf(seed) ?? seedOf(reply['seed']),
      revisedPrompt: typeof revised === 'string' ? textOfString(revised, outline) : null,
    });
  }
  if (images.length === 0 && elsewhere > 0)
    throw malformed('it answered with an address instead of the image, but the request asked for base64');
  if (images.length === 0 && cutOff > 0) throw malformed('the image in its reply is cut off');
  if (images.length === 0) throw malformed('its reply has no image in the format PNG, JPEG or WebP');
  return endOfImages(
    images,
    reply,
    context,
    flagBeyond(faulty > 0 ? ['malformed_reply'] : NO_FLAGS, 'image', data.length, n),
  );
}

export function endOfImages(
  images: readonly FoundImage[],
  reply: Readonly<Record<string, unknown>>,
  { n, inputs, words, worth }: ImageReaderContext,
  ofItems = NO_FLAGS,
): ReplyEnd<ImagesResult> {
  const claim = words === null ? null : reportedWords(reply, inputs > 0);
  const plausible = words !== null && claim !== null && claim > words.most ? words.most : claim;
  const charged = words === null ? undefined : (plausible ?? words.usual);
  const small = worth(images, charged ?? 0n);
  let flags: readonly RaisedFlag[] = ofItems;
  if (words !== null && claim !== null) flags = flagBeyond(flags, 'prompt', Number(claim), Number(words.most));
  if (small !== null) flags = flagBeyond(flags, 'pixel', small.ordered, small.smallest);
  return {
    usage: imagesUsed(images.length, inputs, charged),
    outcome: 'complete',
    costMax: small?.worth ?? null,
    estimated: words !== null && claim === null,
    finishReason: images.length < n ? 'fewer' : 'stop',
    flags,
    result: { images, raw: rawOf(reply), ...(charged === undefined ? {} : { words: charged }) },
  };
}

const RAW = ['created', 'size', 'quality', 'background', 'output_format'];
/** Longer texts are left out. A mark of a long string is longer, too. */
const RAW_CHARS_MAX = 64;
const COUNTS = ['input_tokens', 'output_tokens', 'total_tokens'];

function rawOf(reply: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const raw: Record<string, unknown> = {};
  for (const name of RAW) {
    const value = reply[name];
    if (typeof value === 'number' || (typeof value === 'string' && value.length <= RAW_CHARS_MAX)) raw[name] = value;
  }
  const { usage } = reply;
  if (isObject(usage) && COUNTS.every((name) => Number.isSafeInteger(usage[name])))
    raw['usage'] = { ...countsOf(usage), ...detailsOf(usage) };
  return raw;
}

const countsOf = (usage: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(usage).filter(([name, value]) => name.length <= RAW_CHARS_MAX && Number.isSafeInteger(value)),
  );

const detailsOf = (usage: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    ['input_tokens_details', 'output_tokens_details'].flatMap((name) => {
      const value = usage[name];
      return isObject(value) ? [[name, countsOf(value)]] : [];
    }),
  );
