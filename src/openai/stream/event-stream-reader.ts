import { tooLarge, type UpstreamFailure, GatewayError, parseJson, TooMuchStructure, type JsonLimits } from '#wire';
import { malformed, failedByItsOwnWords } from '#wire/replies';
import type { OutputCounter } from '../chat/output-bound.ts';
import type { SseError } from './sse.ts';

/**
 * A stream is not kept, so its size on the wire is bounded only in proportion to its output. The consumer can ask
 * for much data beside a token: 20 log probabilities have 1.6 KB, for one or two letters of text.
 */
const WIRE_BYTES_PER_OUTPUT_BYTE = 4096;

/** Throws UpstreamFailure if a stream has sent more bytes than the gateway accepts for its output. */
export function checkWireBytes(received: number, replyBytesMax: number, counter: OutputCounter): void {
  if (received <= replyBytesMax + counter.bytes * WIRE_BYTES_PER_OUTPUT_BYTE) return;
  if (hasSaid(counter)) throw tooLarge(`its stream has more than ${replyBytesMax} bytes in addition to its output`);
  throw malformed(`its stream had no output in ${replyBytesMax} bytes`);
}

/**
 * The failure of a line that is longer than the gateway accepts. A long line without data, before any output, is the
 * provider's fault, because no request asks for it.
 */
export const lineTooLong = (error: SseError, counter: OutputCounter): UpstreamFailure =>
  error.isData || hasSaid(counter)
    ? tooLarge(error.message, { cause: error })
    : malformed(`its stream had no output: ${error.message}`, error);

const hasSaid = ({ bytes, otherBytes }: OutputCounter): boolean => bytes + otherBytes > 0;

/**
 * Joins all chunks that arrived together, so that their events are read at once. The result is valid until the next
 * call.
 */
export function joined(chunks: readonly Uint8Array[]): Buffer {
  const only = chunks[0];
  if (chunks.length === 1 && only) return asBuffer(only);
  let length = 0;
  for (const chunk of chunks) {
    if (length + chunk.byteLength > together.length) return Buffer.concat(chunks);
    together.set(chunk, length);
    length += chunk.byteLength;
  }
  return together.subarray(0, length);
}

/** All streams share it, because nothing of it is kept. Most of what arrives in one turn of the event loop fits. */
const together = Buffer.allocUnsafeSlow(128 * 1024);

const asBuffer = (bytes: Uint8Array) =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

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
