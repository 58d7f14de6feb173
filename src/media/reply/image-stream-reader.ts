import { isObject, type UpstreamFailure } from '#wire';
import { bytesOfString, failedByItsOwnWords, malformed, withoutLongStrings } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#gateway';
import type { ImageStream } from '../request/image-ask.ts';
import { createEventSplitter, type EventSplitter } from './event-splitter.ts';
import { base64Of, checkBase64, type FoundImage, headOf, seedOf } from './found-image.ts';
import { imagesUsed, parseImageReply, rawOf, type ReaderContext } from './image-reader.ts';
import { isWholeImage } from './whole-image.ts';
import { partialEvent } from './stream-events.ts';

/**
 * Reads a stream of one image, in the form of OpenAI's API. Partial images go out as they come. The final image is
 * held until the settlement. `whole` reads a reply that is no stream.
 */
export function createImageStreamReader(context: ReaderContext, stream: ImageStream, whole: ReplyReader): ReplyReader {
  return new ImageStreamReader(context, stream, whole);
}

class ImageStreamReader implements ReplyReader {
  readonly #context: ReaderContext;
  readonly #stream: ImageStream;
  readonly #whole: ReplyReader;
  readonly #splitter: EventSplitter;
  #streams = false;
  #bytes = 0;
  #partials = 0;
  #end: ReplyEnd | null = null;

  constructor(context: ReaderContext, stream: ImageStream, whole: ReplyReader) {
    this.#context = context;
    this.#stream = stream;
    this.#whole = whole;
    this.#splitter = createEventSplitter(context.replyBytesMax);
  }

  get kept(): number | undefined {
    return this.#streams ? this.#splitter.kept() : this.#whole.kept;
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
    const given: Uint8Array[] = [];
    for (const chunk of chunks) {
      this.#bytes += chunk.byteLength;
      for (const data of this.#splitter.push(chunk)) given.push(...this.#take(data));
    }
    // Partial images come in addition to the final image.
    if (this.#bytes > this.#context.replyBytesMax * ((this.#stream.partialImages ?? 0) + 1))
      throw malformed('its stream is too large');
    return given.length === 0 ? null : Buffer.concat(given);
  }

  endElsewhere(): Promise<ReplyEnd> | null {
    return this.#streams ? null : (this.#whole.endElsewhere?.() ?? null);
  }

  end(): ReplyEnd {
    if (!this.#streams) return this.#whole.end();
    // Partial images can no longer be given out, so the result is ignored.
    for (const data of this.#splitter.end()) this.#take(data);
    if (this.#end === null) throw malformed('its stream ended before the image');
    return this.#end;
  }

  cut(cut: Cut): ReplyEnd {
    return this.#whole.cut(cut);
  }

  /** The bytes for the client; empty for an event that is held or unknown. */
  #take(data: Buffer): readonly Uint8Array[] {
    if (this.#end !== null || data.equals(DONE)) return [];
    const { partialImages, eventPrefix } = this.#stream;
    const outline = withoutLongStrings(data);
    const event = parseImageReply(outline.json);
    const { type, b64_json: inBase64, error } = event;
    if (type === 'error' || isObject(error)) throw failedByItsOwnWords(error ?? event);
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
    const found = { ...image, seed: seedOf(event['seed']), revisedPrompt: null };
    this.#end = endOf(found, this.#context, rawOf(event));
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

function endOf(image: FoundImage, { inputs, worth }: ReaderContext, raw: Readonly<Record<string, unknown>>): ReplyEnd {
  const costMax = worth([image]);
  return {
    usage: imagesUsed(1, inputs),
    outcome: 'complete',
    costMax,
    estimated: false,
    finishReason: 'stop',
    flags: costMax === null ? [] : ['usage_implausible'],
    tail: { images: [image], raw },
  };
}
