import { IMAGE_PATHS } from '#config';
import { jsonBody } from './edit-body.ts';
import type { ImageWire } from './image-wire.ts';
import { openaiFields } from './openai-images.ts';

const PATHS = IMAGE_PATHS.tollgate;

/** The API of another tollgate gateway. Its fields are the same as ours. */
export const tollgateImages: ImageWire = {
  fields(ask, offer) {
    const { num_inference_steps: steps, ...fields } = openaiFields(ask, offer, false);
    return steps === undefined ? fields : { ...fields, steps };
  },
  request(ask, offer, asksForBase64) {
    const fields = this.fields(ask, offer, asksForBase64);
    return ask.edit === null
      ? { path: PATHS.make, contentType: 'application/json', body: JSON.stringify(fields) }
      : { path: PATHS.edit, ...jsonBody(fields, ask.edit, IN_JSON) };
  },
};

const IN_JSON = { list: 'images', mask: 'mask', before: '{"b64":"', after: '"}' };
