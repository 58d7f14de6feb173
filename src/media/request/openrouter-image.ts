import { GatewayError, isObject } from '#wire';
import type { ImageBody } from './image-ask.ts';

/* Requests for images in the form of OpenRouter's API: one address for images of a prompt, and of other images. */

/** Its name of the images of a request. */
export const REFERENCES = 'input_references';

const TIER = /^(?:512|\d{1,2}K)$/;

/**
 * Turns a parsed body into one with the gateway's names. Throws GatewayError `invalid_request` for two tiers that
 * differ.
 */
export function fromOpenrouter(value: unknown): unknown {
  if (!isObject(value)) return value;
  // What `trace` asks for happens nowhere here, and no provider gets it.
  const { trace: _, size, aspect_ratio: ratio, ...rest } = value;
  const body: Record<string, unknown> = rest;
  if (ratio !== undefined && ratio !== 'auto') body['aspect_ratio'] = ratio;
  if (typeof size !== 'string' || !TIER.test(size)) return size === undefined ? body : { ...body, size };
  const named = body['resolution'] ?? size;
  if (named !== size)
    throw new GatewayError('invalid_request', `size ${size} and resolution ${String(named)} differ: send only one`, {
      param: 'size',
    });
  return { ...body, resolution: size };
}

/** Throws GatewayError `invalid_request` for images under the names of other addresses. */
export function refuseOtherImages(body: ImageBody): void {
  for (const name of ['images', 'mask'])
    if ((body[name] ?? null) !== null)
      throw new GatewayError(
        'invalid_request',
        `${name} is not a field of this address: send images as ${REFERENCES}, and masks to /images/edits`,
        { param: name },
      );
}
