import { GatewayError } from '#wire';
import type { ResponsesBody } from '../responses-schema.ts';

/** Fields that refer to something that this gateway never keeps. */
const NEVER_KEPT = ['conversation', 'prompt'] as const;

/** Throws GatewayError `invalid_request` for a conversation or a prompt that a service has stored. */
export function refuseNeverKept(body: ResponsesBody): void {
  for (const field of NEVER_KEPT) {
    const value = body[field];
    // A stored prompt is named by an object. In other APIs, `prompt` is a text.
    if (value === undefined || value === null || (field === 'prompt' && typeof value !== 'object')) continue;
    throw new GatewayError(
      'invalid_request',
      `${field} is not supported, because this gateway keeps none: it keeps responses. Name the last one in previous_response_id, or send the whole input`,
      { param: field },
    );
  }
}

/** The error for a request that needs kept responses at a gateway that keeps none. `what`: the field or the item. */
export const keepsNone = (what: string, param: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `${what} is not supported, because this gateway keeps no responses (responses.keep_ms is 0). Send the whole input, and store: false, so that your client does not refer to earlier responses`,
    { param },
  );

/** The error for a response that is to be made in the background. */
export const notInBackground = (): GatewayError =>
  new GatewayError(
    'invalid_request',
    'background: true is not supported: this gateway answers each request in place. Leave it out, and set stream: true if the answer takes long',
    { param: 'background' },
  );

export const noResponse = (id: string): GatewayError =>
  new GatewayError('not_found', `Response with id '${shown(id)}' not found.`, { param: 'response_id' });

export const noPrevious = (id: string): GatewayError =>
  new GatewayError('invalid_request', `Previous response with id '${shown(id)}' not found.`, {
    param: 'previous_response_id',
    providerCode: 'previous_response_not_found',
  });

export const noItem = (id: string): GatewayError =>
  new GatewayError(
    'not_found',
    `Item with id '${shown(id)}' not found. Items are kept with their response, unless its request said store: false. Send the item itself, or leave it out`,
    { param: 'input' },
  );

const SHOWN_MAX = 128;
const shown = (id: string): string => id.slice(0, SHOWN_MAX).toWellFormed();
