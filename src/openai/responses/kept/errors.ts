import type { JsonObject } from '#wire';
import { GatewayError } from '#errors';
import type { ResponsesBody } from '../schema.ts';

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

/** Throws GatewayError `invalid_request` for a response in the background that its client could not ask for. */
export function refuseUnkept({ store }: ResponsesBody, keepsResponses: boolean): void {
  if (!keepsResponses)
    throw new GatewayError(
      'invalid_request',
      'background: true is not supported, because this gateway keeps no responses (responses.keep_ms is 0). Leave it out, and set stream: true if the answer takes long',
      { param: 'background' },
    );
  if (store === false)
    throw new GatewayError(
      'invalid_request',
      'background: true needs store: true, because the response is kept until you ask for it. Leave store out, or leave background out',
      { param: 'store' },
    );
}

export const noResponse = (id: string): GatewayError =>
  new GatewayError('not_found', `Response with id '${shownId(id)}' not found.`, { param: 'response_id' });

export const noPrevious = (id: string): GatewayError =>
  new GatewayError('invalid_request', `Previous response with id '${shownId(id)}' not found.`, {
    param: 'previous_response_id',
    providerCode: 'previous_response_not_found',
  });

export const notStreamed = (id: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `Response with id '${shownId(id)}' has no stream: only one that was created with background: true and stream: true has. Ask for it without stream`,
    { param: 'stream' },
  );

export const underWay = (id: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `Previous response with id '${shownId(id)}' is still under way in the background. Wait until it has ended`,
    { param: 'previous_response_id' },
  );

export const cannotCancel = ({ background, status }: JsonObject): GatewayError =>
  new GatewayError(
    'invalid_request',
    background === true
      ? `Cannot cancel a response that has ended: its status is ${String(status)}`
      : 'Cannot cancel a synchronous response: only one that was created with background: true can be cancelled. To end another one, close its connection',
    { param: 'response_id' },
  );

export const noItem = (id: string): GatewayError =>
  new GatewayError(
    'not_found',
    `Item with id '${shownId(id)}' not found. Items are kept with their response, unless its request said store: false. Send the item itself, or leave it out`,
    { param: 'input' },
  );

const SHOWN_MAX = 128;
const shownId = (id: string): string => id.slice(0, SHOWN_MAX).toWellFormed();
