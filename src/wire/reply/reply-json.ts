import { GatewayError } from '../errors.ts';
import { type JsonLimits, parseJson, TooMuchStructure } from '../json-guard.ts';
import { isObject } from '../json/json-object.ts';
import type { UpstreamFailure } from '../upstream-failure.ts';
import { malformed } from './provider-failure.ts';

type ToFailure = (what: string, cause: unknown) => UpstreamFailure;

/**
 * Parses the whole reply of a provider. Throws UpstreamFailure if it is not JSON, or has too much structure. `tooMuch`
 * makes the failure for the second; by default it is a fault of the provider.
 */
export function parseReplyJson(bytes: Uint8Array, limits: JsonLimits, tooMuch: ToFailure = malformed): unknown {
  try {
    return parseJson(bytes, limits);
  } catch (error) {
    if (error instanceof TooMuchStructure) throw tooMuch('its reply has more structure than is read', error);
    if (error instanceof GatewayError) throw malformed('its reply is not valid JSON', error);
    throw error;
  }
}

/** As parseReplyJson. Also throws UpstreamFailure if the reply is not an object. */
export function parseReplyObject(bytes: Uint8Array, limits: JsonLimits, tooMuch?: ToFailure): Record<string, unknown> {
  const parsed = parseReplyJson(bytes, limits, tooMuch);
  if (!isObject(parsed)) throw malformed('its reply is not a JSON object');
  return parsed;
}
