import { GatewayError } from '#wire';
import type { ResponsesBody } from './responses-schema.ts';

/** Fields that refer to something that a service has stored. */
const KEPT = ['previous_response_id', 'conversation'] as const;

export const noItemsKept = (param: string): GatewayError =>
  new GatewayError(
    'invalid_request',
    `${param} is not supported, because this gateway stores no responses. Send the whole input`,
    {
      param,
    },
  );

/**
 * Throws GatewayError `invalid_request` for a request that refers to something stored, or that wants to run in the
 * background.
 */
export function refuseKept(body: ResponsesBody): void {
  for (const field of KEPT) if (body[field] !== undefined && body[field] !== null) throw noItemsKept(field);
  // A stored prompt is named by an object. In other APIs, `prompt` is a text.
  if (typeof body['prompt'] === 'object' && body['prompt'] !== null) throw noItemsKept('prompt');
  if (body['background'] === true) throw noItemsKept('background');
}
