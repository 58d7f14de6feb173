import type { Bound } from './bounds.ts';
import { guardInTurns, guardStructure, isObject, type JsonObject, jsonText, readJson } from './json/json-guard.ts';

/* The way in for JSON that others wrote and that is only read here. Its values are those of JSON.parse. */

/** A shorter text cannot hold a structure that is expensive to build. */
const UNGUARDED_BYTES = 4096;

/**
 * Parses it at once. Throws SyntaxError, and GatewayError for more than its bound and for bytes that are no UTF-8.
 * `bytes` of a text, if they are at hand, need not be made again.
 */
export function parseForeign(text: string | Uint8Array, bound: Bound, bytes?: Uint8Array): unknown {
  if (typeof text !== 'string') return JSON.parse(jsonText(text, bound)) as unknown;
  if (text.length >= UNGUARDED_BYTES) guardStructure(bytes ?? Buffer.from(text), bound);
  return JSON.parse(text) as unknown;
}

/**
 * Checks a text that another parser builds values of. Throws GatewayError for more than its bound. A large text gives a
 * promise: it is checked over several turns of the event loop.
 */
export function guardForeign(text: string, bound: Bound): Promise<void> | void {
  if (text.length < UNGUARDED_BYTES) return;
  const bytes = Buffer.from(text);
  if (text.length >= IN_TURNS_CHARS) return guardInTurns(bytes, bound);
  guardStructure(bytes, bound);
}

/** As parseForeign; null for anything but an object. */
export function foreignObject(text: string | Uint8Array, bound: Bound): JsonObject | null {
  try {
    const value = parseForeign(text, bound);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** As parseForeign. A large text is parsed in pieces, over several turns of the event loop. */
export async function readForeign(text: string | Buffer, bound: Bound): Promise<unknown> {
  if (text.length < IN_TURNS_CHARS) return parseForeign(text, bound);
  return readJson(typeof text === 'string' ? Buffer.from(text) : text, bound);
}

/** Up to this length a text is parsed at once. */
const IN_TURNS_CHARS = 64 * 1024;
