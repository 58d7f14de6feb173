import { GatewayError } from '#errors';
import { type Bound, BOUNDS, parseForeign, tooLarge, TooMuchStructure, UpstreamFailure, type JsonObject } from '#wire';
import { failedByItsOwnWords, HeadReader, malformed } from '#wire/replies';
import type { ReplyPiece } from '#billing/amounts';
import type { ReplyEnd } from '#call';
import type { ReplyContext } from '../chat/reply/chat-end.ts';
import { createOutputCounter, type OutputCounter } from '../chat/reply/output-bound.ts';
import { createSseScanner, SseError, type SseScanner } from './sse.ts';

interface OutputSource<D> {
  arrives(bytes: number): void;
  take(): D | null;
}

/**
 * Reads a reply that is a stream of events, for every wire: it finds the events, collects the output for the client,
 * and bounds what a provider may send. A class, because a getter in an object literal keeps the call in memory until a
 * full collection.
 */
export abstract class EventStreamReader<D extends ReplyPiece> extends HeadReader {
  protected readonly context: ReplyContext;
  protected readonly counter: OutputCounter;
  readonly #output: OutputSource<D>;
  readonly #scanner: SseScanner;
  /** An event came that is more than an opening. */
  protected hasContent = false;
  #isHeld = true;
  #maySkip = true;
  #hasSkipped = false;
  #received = 0;
  #isBroken = false;

  /** `output`: collects what the events give for the client. */
  constructor(context: ReplyContext, output: OutputSource<D>, eventBytesMax?: number) {
    super();
    this.context = context;
    this.#output = output;
    this.counter = createOutputCounter(context.budget);
    this.#scanner = createSseScanner(
      (bytes, start, end, refused, isError) => {
        if (isError) failByName(bytes.subarray(start, end), bytes.toString('utf8', start, end));
        return (!refused && this.takeKnown(bytes, start, end, false) === end) || this.#readEvent(bytes, start, end);
      },
      eventBytesMax,
      (bytes, start, end) => this.takeKnown(bytes, start, end, true),
    );
  }

  /** The last event was read, or the output ran past its budget. */
  abstract get finished(): boolean;

  protected abstract takeKnown(bytes: Buffer, start: number, end: number, framed: boolean): number;

  /** Parses the event with this data and passes it on. Returns false after the last event. */
  protected abstract readEvent(bytes: Buffer, start: number, end: number): boolean;

  /**
   * Reads the events in bytes that arrived together, and returns the output for the client; null until the stream has
   * content. Providers open a stream before they know that they have no quota, or are overloaded, and while nothing
   * was given out, another provider can be asked. Throws UpstreamFailure if the stream is broken or too large.
   */
  protected read(chunks: readonly Uint8Array[]): D | null {
    if (this.finished) return null;
    const arrived = joined(chunks);
    this.#received += arrived.length;
    this.#output.arrives(arrived.length);
    this.#reading(() => this.#scanner.push(arrived));
    this.#checkWireBytes();
    if (this.#isHeld) {
      this.#isHeld = !this.hasContent && !hasSaid(this.counter) && !this.finished && this.#received <= HELD_BYTES_MAX;
      if (this.#isHeld) return null;
    }
    return this.#output.take();
  }

  protected readRest(): void {
    // An event that the end of the stream cuts off is not skipped.
    this.#maySkip = false;
    if (!this.finished) this.#reading(() => this.#scanner.end());
  }

  /** The end of a whole reply, flagged if an event of it was skipped. */
  protected flagged<R>(end: ReplyEnd<R>): ReplyEnd<R> {
    if (!this.#hasSkipped || end.flags.includes('malformed_reply')) return end;
    return { ...end, flags: [...end.flags, 'malformed_reply'] };
  }

  /** Reads an event. One in a stream may be cut off before any text, and is skipped. */
  #readEvent(bytes: Buffer, start: number, end: number): boolean {
    try {
      return this.readEvent(bytes, start, end);
    } catch (error) {
      if (!this.#maySkip || !isCutBeforeText(error, bytes.toString('utf8', start, end))) throw error;
      this.#maySkip = false;
      this.#hasSkipped = true;
      return true;
    }
  }

  /** Throws UpstreamFailure if the stream that is cut was broken before. */
  protected refuseBroken(): void {
    if (this.#isBroken) throw malformed('its stream was broken before it was cut');
  }

  #reading(read: () => void): void {
    try {
      read();
    } catch (error) {
      const failure = error instanceof SseError ? lineTooLong(error, this.counter) : error;
      this.#isBroken = !(failure instanceof UpstreamFailure && failure.tooLarge);
      throw failure;
    }
  }

  #checkWireBytes(): void {
    const { replyBytesMax } = this.context;
    if (this.#received <= replyBytesMax + this.counter.bytes * WIRE_BYTES_PER_OUTPUT_BYTE) return;
    if (hasSaid(this.counter))
      throw tooLarge(`its stream has more than ${replyBytesMax} bytes in addition to its output`);
    throw malformed(`its stream had no output in ${replyBytesMax} bytes`);
  }
}

/** So much of the opening of a stream waits for its content. */
const HELD_BYTES_MAX = 64 * 1024;

/**
 * A stream is not kept, so its size on the wire is bounded only in proportion to its output. The consumer can ask
 * for much data beside a token: 20 log probabilities have 1.6 KB, for one or two letters of text.
 */
const WIRE_BYTES_PER_OUTPUT_BYTE = 4096;

/**
 * The failure of a line that is longer than the gateway accepts. A long line without data, before any output, is the
 * provider's fault, because no request asks for it.
 */
const lineTooLong = (error: SseError, counter: OutputCounter): UpstreamFailure =>
  error.isData || hasSaid(counter)
    ? tooLarge(error.message, { cause: error })
    : malformed(`its stream had no output: ${error.message}`, error);

const hasSaid = ({ bytes, otherBytes }: OutputCounter): boolean => bytes + otherBytes > 0;

/**
 * Joins all chunks that arrived together, so that their events are read at once. The result is valid until the next
 * call.
 */
function joined(chunks: readonly Uint8Array[]): Buffer {
  const only = chunks[0];
  if (chunks.length === 1 && only) return asBuffer(only);
  let length = 0;
  for (const chunk of chunks) {
    if (length + chunk.byteLength > together.length) return Buffer.concat(chunks);
    together.set(chunk, length);
    length += chunk.byteLength;
  }
  return together.subarray(0, length);
}

/** All streams share it, because nothing of it is kept. Most of what arrives in one turn of the event loop fits. */
const together = Buffer.allocUnsafeSlow(128 * 1024);

const asBuffer = (bytes: Uint8Array) =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const BEGUN_OBJECT = /^\{\s*(?:"|$)/;
/** Members whose text a client would miss. */
const BEGUN_TEXT =
  /"(?:content|text|delta|reasoning\w*|thinking|signature|refusal|arguments|partial_json|input|name|data|url|b64_json|transcript)"\s*:\s*"[^"]/;

/** Whether an event is the beginning of an object of JSON, which ends before any text of the model begins. */
const isCutBeforeText = (error: unknown, text: string): boolean =>
  error instanceof UpstreamFailure &&
  error.cause instanceof SyntaxError &&
  BEGUN_OBJECT.test(text) &&
  !text.trimEnd().endsWith('}') &&
  !BEGUN_TEXT.test(text);

/** Parses one event of a stream. Throws UpstreamFailure for anything but a JSON object of a bounded structure. */
export function parseChunk(bytes: Buffer, text: string, limits: Bound = BOUNDS.chatEvent): JsonObject {
  let parsed: unknown;
  try {
    parsed = parseForeign(text, limits, bytes);
  } catch (error) {
    if (error instanceof TooMuchStructure)
      throw tooLarge('its stream has an event with more structure than is read', { cause: error });
    if (error instanceof SyntaxError || error instanceof GatewayError)
      throw malformed('its stream has an event that is not valid JSON', error);
    throw error;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw malformed('its stream has an event that is not a JSON object');
  return parsed as JsonObject;
}

/**
 * Parses an event that its provider names an error, and throws its failure. The error is a member of the event, or the
 * event itself.
 */
function failByName(bytes: Buffer, text: string): never {
  const event = parseChunk(bytes, text);
  throw failedByItsOwnWords(event['error'] ?? event);
}
