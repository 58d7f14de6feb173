import { isObject, type JsonLimits, parseJson } from '../json/json-guard.ts';

/** A usage has less. */
const OBJECT_BYTES_MAX = 4096;
/** Searching so much backwards takes 3 ms at most. */
const SEARCHED_BYTES = 1024 * 1024;
const LIMITS: JsonLimits = { jsonDepthMax: 8, jsonKeysMax: 256 };

const OPENING = 0x7b;
const CLOSING = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/**
 * The last member with this name whose value is an object, in a JSON text or in a part of one; null without one. A
 * reply that is given up is read in this way for its usage, which nearly always stands at its end. Names are found by
 * their bytes, in the first and the last MiB. The quotes of a name inside a text are escaped, so a text has no such
 * name. `rest`: the end of the text, if `text` is only its beginning.
 */
export function lastObjectIn(text: Buffer, name: string, rest?: Buffer): Readonly<Record<string, unknown>> | null {
  const atEnd = rest && lastIn(Buffer.concat([text.subarray(-OBJECT_BYTES_MAX), rest]), name);
  return atEnd ?? lastIn(text.subarray(-SEARCHED_BYTES), name) ?? lastIn(text.subarray(0, SEARCHED_BYTES), name);
}

/** As `lastObjectIn`, of a reply of which only the end is there; null without an end. */
export const lastObjectInRest = (rest: Buffer | undefined, name: string): Readonly<Record<string, unknown>> | null =>
  rest === undefined ? null : lastIn(rest, name);

function lastIn(bytes: Buffer, name: string): Readonly<Record<string, unknown>> | null {
  const key = `"${name}"`;
  for (let at = bytes.lastIndexOf(key); at !== -1; at = at === 0 ? -1 : bytes.lastIndexOf(key, at - 1)) {
    let from = at + key.length;
    while (isSpace(bytes[from])) from++;
    if (bytes[from] !== COLON) continue;
    do from++;
    while (isSpace(bytes[from]));
    if (bytes[from] !== OPENING) continue;
    return objectAt(bytes, from);
  }
  return null;
}

/** null for an object that is not complete, too long, or no JSON. */
function objectAt(bytes: Buffer, from: number): Readonly<Record<string, unknown>> | null {
  let depth = 0;
  let inText = false;
  for (let at = from; at < Math.min(bytes.length, from + OBJECT_BYTES_MAX); at++) {
    const byte = bytes[at];
    if (inText && byte === BACKSLASH) at++;
    else if (byte === QUOTE) inText = !inText;
    else if (!inText && byte === OPENING) depth++;
    else if (!inText && byte === CLOSING && --depth === 0) return parsed(bytes.subarray(from, at + 1));
  }
  return null;
}

function parsed(bytes: Buffer): Readonly<Record<string, unknown>> | null {
  try {
    const value = parseJson(bytes, LIMITS);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
