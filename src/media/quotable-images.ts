import type { Config } from '#config';
import { NO_PAYMENTS, type Quotable } from '#gateway';
import { QUOTE_ROUTES } from './image-quotes.ts';
import { imageToCall } from './image-to-call.ts';
import { createReadImage } from './read-request.ts';

/** Turns a quote request for images into a call. A body with `images`, `image` or `image_count` is an edit. */
export function quotableImages({
  limits,
  upstream,
  billing,
}: Pick<Config, 'limits' | 'upstream' | 'billing'>): Quotable {
  const fetchInputs = () => {
    throw new Error('nothing is fetched for a quote');
  };
  const [generate, edit] = QUOTE_ROUTES.map((route) => ({
    route,
    read: createReadImage({ payments: NO_PAYMENTS, limits, fetchInputs }, route),
  }));
  return async (body, { caller, requestId, headers }) => {
    const edits = ['images', 'image', 'image_count'].some((name) => Object.hasOwn(body, name));
    const { read } = edits ? edit! : generate!;
    const image = await read(Buffer.from(JSON.stringify(body)), {}, caller, null);
    return imageToCall(image.body, {
      ...image,
      events: { prefix: 'image_generation', partialImages: 2 },
      requestId,
      headers,
      replyBytesMax: upstream.imagesReplyBytesMax,
      receipts: billing.receipts,
    }).request;
  };
}
