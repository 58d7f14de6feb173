import type { RequestAdapter, Offer } from '#gateway';
import { createImageReader, type ReaderContext } from './reply/image-reader.ts';
import { createImageStreamReader } from './reply/image-stream-reader.ts';
import { worthOf } from './image-price.ts';
import type { ImageAsk } from './request/image-ask.ts';
import { wireOf } from './wires/wire-of.ts';

interface ImageRequestAdapterOptions {
  readonly ask: ImageAsk;
  readonly requestId: string;
  readonly replyBytesMax: number;
}

/** The field that asks for base64. Some models always answer base64, and refuse this field. */
const BASE64_FIELD = 'response_format';
const REFUSED: ReadonlySet<number> = new Set([400, 422]);

/** The native side of a call for images: one request to each offer that is tried. */
export function createImageRequestAdapter({
  ask,
  requestId,
  replyBytesMax,
}: ImageRequestAdapterOptions): RequestAdapter {
  const common = { n: ask.n, inputs: ask.edit?.count ?? 0, replyBytesMax };
  const { stream } = ask;
  const streams = stream !== null && stream.partialImages !== null;
  const accept = streams ? 'text/event-stream, application/json' : 'application/json';
  /** Offers that refused the field. */
  const plain = new Set<Offer>();
  return {
    request(offer) {
      const { path, contentType, body } = wireOf(offer).request(ask, offer, !plain.has(offer));
      const headers = { 'content-type': contentType, accept, 'x-request-id': requestId };
      return { method: 'POST', path, headers, body };
    },
    reader(offer) {
      const context: ReaderContext = { ...common, worth: (images) => worthOf(ask, offer, images) };
      const whole = createImageReader(context);
      return streams ? createImageStreamReader(context, stream, whole) : whole;
    },
    reform(offer, status, body) {
      if (plain.has(offer) || !REFUSED.has(status) || !Buffer.from(body).includes(BASE64_FIELD)) return false;
      if (!Object.hasOwn(wireOf(offer).fields(ask, offer, true), BASE64_FIELD)) return false;
      plain.add(offer);
      return true;
    },
  };
}
