import { WholeHeadReader, malformed, readElsewhere, tooLarge, UpstreamFailure } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#call';
import { type ChatResult, cutEnd, type ReplyContext } from './chat-end.ts';
import { CHAT_NAMES, partialCompletion, partialElsewhere, partialOf, type PartialReply } from './partial-reply.ts';
import { endHere, type ReplyForm } from './whole-reply.ts';
import type { ReadReply } from './whole-reply-worker.ts';

/**
 * Reads a reply that is one JSON object. Nothing goes out before its end, so that a failed reply can be retried
 * elsewhere.
 */
export class ChatReplyReader extends WholeHeadReader implements ReplyReader<ChatResult, never> {
  readonly #context: ReplyContext;
  readonly #collected: Collector;

  constructor(context: ReplyContext) {
    super();
    this.#context = context;
    this.#collected = new Collector(context);
  }

  data(chunks: readonly Uint8Array[]): null {
    this.#collected.push(chunks);
    return null;
  }

  get storedBytes(): number {
    return this.#collected.bytes;
  }

  endElsewhere(): Promise<ReplyEnd<ChatResult>> | null {
    return endInWorker(this.#context, this.#collected, 'completion');
  }

  end(): ReplyEnd<ChatResult> {
    return endHere(this.#context, this.#collected.take(), 'completion');
  }

  cutElsewhere(cut: Cut): Promise<ReplyEnd<ChatResult>> | null {
    const partial = partialElsewhere(this.#context, this.#collected, CHAT_NAMES, cut.rest);
    return partial?.then((came) => this.#cutAt(came, cut)) ?? null;
  }

  cut(cut: Cut): ReplyEnd<ChatResult> {
    return this.#cutAt(partialOf({ bytes: this.#collected.take(), names: CHAT_NAMES, rest: cut.rest }), cut);
  }

  #cutAt(came: PartialReply, cut: Cut): ReplyEnd<ChatResult> {
    return cutEnd(this.#context, partialCompletion(this.#context, came), cut, false);
  }
}

/**
 * The event loop reads a reply that is wanted as an object. The reply must be small enough not to delay other calls.
 */
const OBJECT_BYTES_MAX = 2 * 1024 * 1024;

/** Keeps the chunks of a body, up to the largest reply that the context allows. */
export class Collector {
  bytes = 0;
  readonly #bytesMax: number;
  #chunks: Uint8Array[] = [];
  /** Only white space has come so far. */
  #isBlank = true;

  constructor({ replyBytesMax, asObject }: Pick<ReplyContext, 'replyBytesMax' | 'asObject'>) {
    this.#bytesMax = asObject ? Math.min(replyBytesMax, OBJECT_BYTES_MAX) : replyBytesMax;
  }

  /**
   * Throws UpstreamFailure if the body becomes larger than the maximum: `tooLarge`, or a failure of the provider if
   * the whole body is white space. The last chunks are kept nevertheless.
   */
  push(chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) {
      this.bytes += chunk.byteLength;
      this.#chunks.push(chunk);
      this.#isBlank &&= isBlank(chunk);
    }
    if (this.bytes <= this.#bytesMax) return;
    if (this.#isBlank) throw malformed(`its reply had no output in ${this.#bytesMax} bytes`);
    throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
  }

  take(): Buffer {
    const [only] = this.#chunks;
    if (this.#chunks.length !== 1 || !only) return Buffer.concat(this.#chunks);
    return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  }

  /** The whole body, copied into memory that can be transferred to another thread. */
  giveAway(): ArrayBuffer {
    const all = new Uint8Array(this.bytes);
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.byteLength;
    }
    this.#chunks = [];
    return all.buffer;
  }

  takeBack(bytes: ArrayBuffer): void {
    this.#chunks.push(new Uint8Array(bytes));
  }
}

/** The white space of JSON is this byte and bytes below it. All other bytes of JSON are above it. */
const SPACE = 0x20;
const isBlank = (chunk: Uint8Array): boolean => chunk.every((byte) => byte <= SPACE);

/** In the worst case, a larger reply would block the event loop for more than a few milliseconds. */
const HERE_BYTES_MAX = 64 * 1024;

const WORKER = new URL('./whole-reply-worker.ts', import.meta.url);

/**
 * Reads a large reply in another thread. The result has the reply as text instead of an object. Returns null for a
 * reply that is small, or wanted as an object.
 */
export function endInWorker(
  context: ReplyContext,
  collected: Collector,
  form: ReplyForm,
): Promise<ReplyEnd<ChatResult>> | null {
  if (context.asObject || collected.bytes <= HERE_BYTES_MAX) return null;
  return read(context, collected, form);
}

async function read(context: ReplyContext, collected: Collector, form: ReplyForm): Promise<ReplyEnd<ChatResult>> {
  const bytes = collected.giveAway();
  let answer: ReadReply;
  try {
    answer = (await readElsewhere(context.readFor, WORKER, { context, bytes, form }, [bytes])) as ReadReply;
  } catch (error) {
    throw tooLarge('reading its reply needs more memory than one reply may use', { cause: error });
  }
  if ('end' in answer) return answer.end;
  if (answer.bytes) collected.takeBack(answer.bytes);
  const { message, words, ...rest } = answer.failure;
  throw new UpstreamFailure(message, { ...rest, cause: words === null ? undefined : new Error(words) });
}
