import { GatewayError, parseJson, tooLarge, TooMuchStructure, type JsonLimits } from '#wire';
import { failedByItsOwnWords, malformed } from '#wire/replies';

type Json = Record<string, unknown>;

const EVENT_LIMITS: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 10_000, jsonElementsMax: 100_000, repairText: true };

/** Parses one event of a stream. Throws UpstreamFailure for anything but a JSON object of a bounded structure. */
export function parseChunk(bytes: Buffer, text: string, limits: JsonLimits = EVENT_LIMITS): Json {
  let parsed: unknown;
  try {
    // Most events are too small to hold a structure that is expensive to build.
    parsed = bytes.length < 4096 ? JSON.parse(text) : parseJson(bytes, limits);
  } catch (error) {
    if (error instanceof TooMuchStructure)
      throw tooLarge('its stream has an event with more structure than is read', { cause: error });
    if (error instanceof SyntaxError || error instanceof GatewayError)
      throw malformed('its stream has an event that is not valid JSON', error);
    throw error;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw malformed('its stream has an event that is not a JSON object');
  return parsed as Json;
}

/**
 * Parses an event that its provider names an error, and throws its failure. The error is a member of the event, or the
 * event itself.
 */
export function failByName(bytes: Buffer, text: string): never {
  const event = parseChunk(bytes, text);
  throw failedByItsOwnWords(event['error'] ?? event);
}

/** The choices of a chunk; empty if it has only usage; null for an event that is not a chunk. */
export function choicesOf(chunk: Json): readonly Json[] | null {
  const { choices } = chunk;
  if (!Array.isArray(choices)) return null;
  if (choices.some((choice) => typeof choice !== 'object' || choice === null))
    throw malformed('its stream has a choice that is no object');
  return choices as readonly Json[];
}
