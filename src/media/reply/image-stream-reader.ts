import { type UpstreamFailure, createByteBuffer } from '#wire';
import { bytesOfString, failedByItsOwnWords, isError, malformed, withoutLongStrings, tooLarge } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#call';
import type { ImageStream, EventPrefix } from '../request/image-ask.ts';
import { base64Of, checkBase64, headOf, seedOf, isWholeImage, type ImageHead } from '../image-file.ts';
import { endOfImages, type ImagesResult, parseImageReply, type ImageReaderContext } from './image-reader.ts';

/**
 * Reads a stream of one image, in the form of OpenAI's API. Partial images go out as they come. The final image is
 * held until the settlement. `whole` reads a reply that is no stream.
 */
export function createImageStreamReader(
  context: ImageReaderContext,
  stream: ImageStream,
  whole: ReplyReader<ImagesResult>,
): ReplyReader<ImagesResult> {
  return new ImageStreamReader(context, stream, whole);
}

class ImageStreamReader implements ReplyReader<ImagesResult> {
  readonly #context: ImageReaderContext;
  readonly #stream: ImageStream;
  readonly #whole: ReplyReader<ImagesResult>;
  readonly #splitter: EventSplitter;
  #streams = false;
  #bytes = 0;
  #partials = 0;
  #end: ReplyEnd<ImagesResult> | null = null;

  constructor(context: ImageReaderContext, stream: ImageStream, whole: ReplyReader<ImagesResult>) {
    this.#context = context;
    this.#stream = stream;
    this.#whole = whole;
    this.#splitter = createEventSplitter(context.replyBytesMax);
  }

  get storedBytes(): number | undefined {
    return this.#streams ? this.#splitter.storedBytes() : this.#whole.storedBytes;
  }

  get finished(): boolean {
    return this.#end !== null;
  }

  head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    this.#whole.head(status, headers);
    this.#streams = /^text\/event-stream\b/i.test(String(headers['content-type'] ?? ''));
  }

  failure(status: number, body: Uint8Array): UpstreamFailure {
    return this.#whole.failure(status, body);
  }

  data(chunks: readonly Uint8Array[]): Uint8Array | null {
    if (!this.#streams) return this.#whole.data(chunks);
    const output: Uint8Array[] = [];
    for (const chunk of chunks) {
      this.#bytes += chunk.byteLength;
      for (const data of this.#splitter.push(chunk)) output.push(...this.#take(data));
    }
    // Partial images come in addition to the final image.
    if (this.#bytes > this.#context.replyBytesMax * ((this.#stream.partialImages ?? 0) + 1))
      throw tooLarge('its stream is too large');
    return output.length === 0 ? null : Buffer.concat(output);
  }

  endElsewhere(): Promise<ReplyEnd<ImagesResult>> | null {
    return this.#streams ? null : (this.#whole.endElsewhere?.() ?? null);
  }

  end(): ReplyEnd<ImagesResult> {
    if (!this.#streams) return this.#whole.end();
    // Partial images can no longer be given out, so the result is ignored.
    for (const data of this.#splitter.end()) this.#take(data);
    if (this.#end === null) throw malformed('its stream ended before the image');
    return this.#end;
  }

  cut(cut: Cut): ReplyEnd<ImagesResult> {
    return this.#whole.cut(cut);
  }

  /** The bytes for the client; empty for an event that is held or unknown. */
  #take(data: Buffer): readonly Uint8Array[] {
    if (this.#end !== null || data.equals(DONE)) return [];
    const { partialImages, eventPrefix } = this.#stream;
    const outline = withoutLongStrings(data);
    const event = parseImageReply(outline.json);
    const { type, b64_json: inBase64, error } = event;
    if (type === 'error' || isError(error)) throw failedByItsOwnWords(error ?? event);
    const isPartial = typeof type === 'string' && type.endsWith('.partial_image');
    if (!isPartial && !(typeof type === 'string' && type.endsWith('.completed'))) return [];
    const base64 = typeof inBase64 === 'string' ? base64Of(bytesOfString(inBase64, outline)) : null;
    const head = base64 === null ? null : headOf(base64);
    const image = base64 === null || head === null || !inOneTurn(checkBase64(base64)) ? null : { ...head, base64 };
    if (isPartial) {
      if (image === null || this.#partials >= (partialImages ?? 0)) return [];
      return partialEvent(eventPrefix, image, this.#partials++);
    }
    if (image === null) throw malformed('its stream ended without an image in the format PNG, JPEG or WebP');
    if (!inOneTurn(isWholeImage(image.base64, image.format))) throw malformed('the image in its stream is cut off');
    const newImage = { ...image, seed: seedOf(event['seed']), revisedPrompt: null };
    this.#end = endOfImages([newImage], event, { ...this.#context, n: 1 });
    return [];
  }
}

const DONE = Buffer.from('[DONE]');

function inOneTurn<T>(work: Generator<void, T, undefined>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

type Image = Pick<ImageHead, 'format'> & { readonly base64: Buffer };

/** `event: <prefix>.partial_image`, with the provider's own base64. */
function partialEvent(prefix: EventPrefix, { format, base64 }: Image, index: number): readonly Uint8Array[] {
  return eventOf(`${prefix}.partial_image`, { partial_image_index: index, output_format: format }, base64);
}

/** The last event of a stream. `more`: its other members, besides the image. */
export function completedEvent(prefix: EventPrefix, image: Image, more: object): readonly Uint8Array[] {
  return eventOf(`${prefix}.completed`, { ...more, output_format: image.format }, image.base64);
}

function eventOf(type: string, members: object, base64: Buffer): readonly Uint8Array[] {
  const text = JSON.stringify({ type, ...members });
  return [Buffer.from(`event: ${type}\ndata: ${text.slice(0, -1)},"b64_json":"`), base64, Buffer.from('"}\n\n')];
}

export const errorEvent = (body: object): Uint8Array =>
  Buffer.from(`event: error\ndata: ${JSON.stringify({ type: 'error', ...body })}\n\n`);

interface EventSplitter {
  /** Takes the next bytes, split anywhere. Returns copies of the data of the events that end in them. */
  push(chunk: Uint8Array): readonly Buffer[];
  /** Returns the last event if no blank line closed it. */
  end(): readonly Buffer[];
  /** Bytes of the event that has not ended. */
  storedBytes(): number;
}

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from('data:');
const SPACE = 0x20;

/**
 * Reads server-sent events as bytes, because an event has megabytes of base64, which should not become a string.
 * Events whose data has several lines are skipped, because no image API sends them. `push` throws UpstreamFailure
 * for an event above `bytesMax`.
 */
function createEventSplitter(bytesMax: number): EventSplitter {
  const pending = createByteBuffer(bytesMax, () => tooLarge(`an event of its stream is larger than ${bytesMax} bytes`));
  let lineEmpty = true;
  const take = (): readonly Buffer[] => {
    const data = dataOf(pending.bytes.subarray(0, pending.length));
    pending.clear();
    return data === null ? [] : [data];
  };
  return {
    storedBytes: () => pending.length,
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const events: Buffer[] = [];
      let from = 0;
      for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
        const length = at - from;
        const isBlank = lineEmpty && (length === 0 || (length === 1 && bytes[from] === CR));
        pending.push(bytes, from, at + 1);
        from = at + 1;
        lineEmpty = true;
        if (isBlank) events.push(...take());
      }
      if (from < bytes.length) {
        pending.push(bytes, from, bytes.length);
        lineEmpty = lineEmpty && bytes.length - from === 1 && bytes[from] === CR;
      }
      return events;
    },
    end: take,
  };
}

/** The data of an event, copied; null without data, or with several lines of data. */
function dataOf(event: Buffer): Buffer | null {
  let data: Buffer | null = null;
  for (let from = 0; from < event.length;) {
    const end = event.indexOf(LF, from);
    const to = end === -1 ? event.length : end;
    if (event.subarray(from, from + DATA.length).equals(DATA)) {
      if (data !== null) return null;
      const start = from + DATA.length + (event[from + DATA.length] === SPACE ? 1 : 0);
      data = event.subarray(start, event[to - 1] === CR ? to - 1 : to);
    }
    from = to + 1;
  }
  return data === null ? null : Buffer.from(data);
}
