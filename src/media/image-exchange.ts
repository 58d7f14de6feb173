import type { Exchange, Offer } from '#gateway';
import { createImageReader } from './reply/image-reader.ts';
import type { ImageAsk } from './request/image-ask.ts';
import { openaiImageBody } from './wires/openai-images.ts';

interface ImageExchangeOptions {
  readonly ask: ImageAsk;
  readonly requestId: string;
  readonly replyBytesMax: number;
}

/** The field that asks for base64. Some models that answer nothing else refuse it. */
const BASE64_FIELD = 'response_format';
const REFUSED: ReadonlySet<number> = new Set([400, 422]);

/** The native side of a call for images: `POST /images/generations` of each offer. */
export function createImageExchange({ ask, requestId, replyBytesMax }: ImageExchangeOptions): Exchange {
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'x-request-id': requestId };
  /** Offers that refused the field. */
  const plain = new Set<Offer>();
  return {
    request(offer) {
      const body = openaiImageBody(ask, offer, !plain.has(offer));
      return { method: 'POST', path: '/images/generations', headers, body: JSON.stringify(body) };
    },
    reader: () => createImageReader({ n: ask.n, replyBytesMax }),
    reform(offer, status, body) {
      if (plain.has(offer) || !REFUSED.has(status) || !Buffer.from(body).includes(BASE64_FIELD)) return false;
      if (!Object.hasOwn(openaiImageBody(ask, offer, true), BASE64_FIELD)) return false;
      plain.add(offer);
      return true;
    },
  };
}
