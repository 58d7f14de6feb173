import { GatewayError } from '#wire';
import type { ChatBody } from '../chat/chat-schema.ts';

/**
 * Fields that only a chat model can obey, each with a test for the values that ask for nothing special. Fields that
 * only influence the style of an answer (temperature, seed) are allowed.
 */
const UNSUPPORTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  tools: (value) => Array.isArray(value) && value.length === 0,
  functions: (value) => Array.isArray(value) && value.length === 0,
  tool_choice: (value) => value === 'none' || value === 'auto',
  function_call: (value) => value === 'none' || value === 'auto',
  response_format: (value) => (value as { readonly type?: unknown } | null)?.type === 'text',
  stop: (value) => Array.isArray(value) && value.length === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => typeof value === 'object' && Object.keys(value!).length === 0,
  modalities: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
  audio: () => false,
  prediction: () => false,
  models: (value) => Array.isArray(value) && value.length === 0,
  max_tool_rounds: () => false,
};

/** Throws GatewayError `invalid_request` if a body asks for something that a tool or an agent cannot do. */
export function refuseUnsupported(body: ChatBody): void {
  for (const field of Object.keys(UNSUPPORTED)) {
    const value = body[field];
    if (value === undefined || value === null || UNSUPPORTED[field]!(value)) continue;
    const message = `${field} works only with chat models. Remove it from requests to ${body.model.slice(0, 128)}`;
    throw new GatewayError('invalid_request', message, { param: field });
  }
}
