import { isObject } from '#wire';
import { failedByItsOwnWords, malformed } from '#wire/replies';
import type { ReplyEnd, ReplyReader } from '#gateway';
import type { ImageStream } from '../request/image-ask.ts';
import { createEventSplitter } from './event-splitter.ts';
import { base64Of, checkBase64, type FoundImage, headOf } from './found-image.ts';
import { imagesUsed, parseImageReply, rawOf, type ReaderContext } from './image-reader.ts';
import { bytesOfString, withoutLongStrings } from './long-strings.ts';
import { partialEvent } from './stream-events.ts';

/**
 * Reads a stream of one image, in the form of OpenAI's API. Partial images go out as they come. The final image is
 * held until the settlement. `whole` reads a reply that is no stream.
 */
export function createImageStreamReader(
  { inputs, replyBytesMax }: ReaderContext,
  { partialImages, eventPrefix }: ImageStream,
  whole: ReplyReader,
): ReplyReader {
  let streams = false;
  let bytes = 0;
  let partials = 0;
  let end: ReplyEnd | null = null;
  const splitter = createEventSplitter(replyBytesMax);

  /** The bytes for the client; empty for an event that is held or unknown. */
  function take(data: Buffer): readonly Uint8Array[] {
    if (end !== null || data.equals(DONE)) return [];
    const outline = withoutLongStrings(data);
    const event = parseImageReply(outline.json);
    const { type, b64_json: inBase64, error } = event;
    if (type === 'error' || isObject(error)) throw failedByItsOwnWords(error ?? event);
    const isPartial = typeof type === 'string' && type.endsWith('.partial_image');
    if (!isPartial && !(typeof type === 'string' && type.endsWith('.completed'))) return [];
    const base64 = typeof inBase64 === 'string' ? base64Of(bytesOfString(inBase64, outline)) : null;
    const head = base64 === null ? null : headOf(base64);
    const image = base64 === null || head === null || !isBase64(base64) ? null : { ...head, base64 };
    if (isPartial) {
      if (image === null || partials >= partialImages) return [];
      return partialEvent(eventPrefix, image, partials++);
    }
    if (image === null) throw malformed('its stream ended without an image in the format PNG, JPEG or WebP');
    end = endOf({ ...image, seed: seedOf(event['seed']), revisedPrompt: null }, inputs, rawOf(event));
    return [];
  }

  return {
    head(status, headers) {
      whole.head(status, headers);
      streams = /^text\/event-stream\b/i.test(String(headers['content-type'] ?? ''));
    },
    failure: (status, body) => whole.failure(status, body),
    data(chunks) {
      if (!streams) return whole.data(chunks);
      const given: Uint8Array[] = [];
      for (const chunk of chunks) {
        bytes += chunk.byteLength;
        for (const data of splitter.push(chunk)) given.push(...take(data));
      }
      // Partial images come in addition to the final image.
      if (bytes > replyBytesMax * (partialImages + 1)) throw malformed('its stream is too large');
      return given.length === 0 ? null : Buffer.concat(given);
    },
    get kept() {
      return streams ? splitter.kept : whole.kept;
    },
    get finished() {
      return end !== null;
    },
    endElsewhere: () => (streams ? null : (whole.endElsewhere?.() ?? null)),
    end() {
      if (!streams) return whole.end();
      // Partial images can no longer be given out, so the result is ignored.
      for (const data of splitter.end()) take(data);
      if (end === null) throw malformed('its stream ended before the image');
      return end;
    },
    cut: (cut) => whole.cut(cut),
  };
}

const DONE = Buffer.from('[DONE]');

const seedOf = (seed: unknown) => (Number.isSafeInteger(seed) ? (seed as number) : null);

function isBase64(base64: Buffer): boolean {
  const checking = checkBase64(base64);
  for (;;) {
    const { done, value } = checking.next();
    if (done) return value;
  }
}

const endOf = (image: FoundImage, inputs: number, raw: Readonly<Record<string, unknown>>): ReplyEnd => ({
  usage: imagesUsed(1, inputs),
  outcome: 'complete',
  estimated: false,
  finishReason: 'stop',
  flags: [],
  tail: { images: [image], raw },
});
