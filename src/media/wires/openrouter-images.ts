import { IMAGE_PATHS } from '#config';
import { unprocessable } from '../image-price.ts';
import { jsonBody } from './edit-body.ts';
import type { ImageWire } from './image-wire.ts';
import { openaiFields } from './openai-images.ts';

const PATHS = IMAGE_PATHS.openrouter;

/** OpenRouter's API. It has one path, and a request with images is an edit. It has no masks. */
export const openrouterImages: ImageWire = {
  fields(ask, offer) {
    if (ask.edit?.hasMask)
      throw unprocessable('mask', `mask is not taken by ${offer.service} of ${offer.provider.name}`);
    if (Object.hasOwn(ask.more, IN_JSON.list))
      throw unprocessable(
        IN_JSON.list,
        `${IN_JSON.list} is the provider's own name of images. Send images to /image/edit`,
      );
    return openaiFields(ask, offer, false);
  },
  request(ask, offer, asksForBase64) {
    const fields = this.fields(ask, offer, asksForBase64);
    const made =
      ask.edit === null
        ? { contentType: 'application/json', body: JSON.stringify(fields) }
        : jsonBody(fields, ask.edit, IN_JSON);
    return { path: ask.edit === null ? PATHS.make : PATHS.edit, ...made };
  },
};

const IN_JSON = {
  list: 'input_references',
  mask: 'mask',
  before: '{"type":"image_url","image_url":{"url":"',
  after: '"}}',
};
