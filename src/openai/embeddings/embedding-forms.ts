import { malformed, tooLarge } from '#wire/replies';
import type { EmbeddingsBody } from './embeddings-schema.ts';

/** How each embedding is written: as numbers, or as the base64 of 32-bit floats. null: as its provider writes it. */
export type EmbeddingForm = 'float' | 'base64' | null;

/** Fields of other APIs that ask for a form. Its numbers may be of other sizes than 32 bits. */
const FORMS_OF_OTHERS = ['embedding_type', 'embedding_types', 'output_dtype'];

export function formOf(body: EmbeddingsBody): EmbeddingForm {
  const { encoding_format: form } = body;
  if (FORMS_OF_OTHERS.some((name) => (body[name] ?? null) !== null)) return null;
  return form === 'base64' ? form : 'float';
}

/** A member `embedding`, or `embeddings`, which some models have for an input with several vectors. */
const KEY = Buffer.from('"embedding');
const [S, QUOTE, COLON, LIST, LIST_END, OBJECT, OBJECT_END] = Buffer.from('s":[]{}') as unknown as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];
const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
/** The most bytes between the beginning of a key and its value. */
const BEFORE_VALUE_MAX = 4096;
/** The most bytes of one embedding: 8,192 numbers as JSON, a few times as long as those of models today. */
export const EMBEDDING_BYTES_MAX = 256 * 1024;

interface FoundValue {
  /** `more`: the bytes end before the value. `other`: the key is another one. */
  readonly kind: 'more' | 'other' | 'empty' | 'nested' | 'numbers' | 'text';
  /** The place where the value begins, or goes on if it stays as it is. */
  readonly at: number;
}

/**
 * Writes the embeddings of a reply in the form that its client asked for, piece by piece, and counts them. The reply
 * is searched and not parsed, because that blocks the process for less time. Lists of lists and objects stay as they
 * are.
 */
export class EmbeddingForms {
  count = 0;
  /** Those without content. */
  empty = 0;
  readonly #form: EmbeddingForm;
  /** Bytes whose meaning is not known yet: a part of a key, or of a value. */
  #open: Uint8Array[] = [];
  openBytes = 0;
  #value: 'numbers' | 'text' | null = null;

  constructor(form: EmbeddingForm) {
    this.#form = form;
  }

  /** The bytes of the reply up to where their meaning is known. Throws UpstreamFailure. */
  push(chunk: Uint8Array): Buffer {
    const out: Uint8Array[] = [];
    let bytes: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    while (bytes.length > 0) bytes = this.#value === null ? this.#outside(bytes, out) : this.#inside(bytes, out);
    return Buffer.concat(out);
  }

  get rest(): Buffer {
    return Buffer.concat(this.#open);
  }

  #keep(bytes: Buffer): Buffer {
    this.#open.push(bytes);
    this.openBytes += bytes.length;
    return NO_BYTES;
  }

  #takeBytes(bytes: Buffer): Buffer {
    if (this.#open.length === 0) return bytes;
    const all = Buffer.concat([...this.#open, bytes]);
    this.#open = [];
    this.openBytes = 0;
    return all;
  }

  /** Reads up to the content of an embedding. Returns the bytes that follow. */
  #outside(arrived: Buffer, out: Uint8Array[]): Buffer {
    const bytes = this.#takeBytes(arrived);
    for (let from = 0; ;) {
      const key = bytes.indexOf(KEY, from);
      if (key === -1) {
        const until = Math.max(from, bytes.length - KEY.length + 1);
        out.push(bytes.subarray(0, until));
        return this.#keep(bytes.subarray(until));
      }
      const foundValue = valueAfter(bytes, key + KEY.length);
      if (foundValue.kind === 'more') {
        if (bytes.length - key > BEFORE_VALUE_MAX) throw malformed('an embedding in its reply does not begin');
        out.push(bytes.subarray(0, key));
        return this.#keep(bytes.subarray(key));
      }
      from = key + KEY.length;
      if (foundValue.kind === 'other') continue;
      this.count++;
      if (foundValue.kind === 'empty') this.empty++;
      if (foundValue.kind === 'numbers' || foundValue.kind === 'text') {
        this.#value = foundValue.kind;
        out.push(bytes.subarray(0, foundValue.at));
        return bytes.subarray(foundValue.at + 1);
      }
      from = foundValue.at;
    }
  }

  /** Reads up to the end of an open embedding. Returns the bytes that follow. */
  #inside(arrived: Buffer, out: Uint8Array[]): Buffer {
    const isText = this.#value === 'text';
    const end = arrived.indexOf(isText ? QUOTE : LIST_END);
    if (end === -1) return this.#keep(arrived);
    const value = this.#takeBytes(arrived.subarray(0, end));
    this.#value = null;
    out.push(isText ? this.#fromText(value) : this.#fromNumbers(value));
    return arrived.subarray(end + 1);
  }

  #fromNumbers(value: Buffer): Buffer {
    const text = value.toString('latin1');
    if (NO_NUMBERS.test(text)) throw malformed('an embedding in its reply is not a list of numbers');
    return this.#form === 'base64' ? Buffer.from(`"${inBase64(text)}"`) : Buffer.concat([OPENING, value, CLOSING]);
  }

  #fromText(value: Buffer): Buffer {
    // JSON may escape a slash.
    const text = value.toString('latin1').replaceAll('\\/', '/');
    if (!BASE64.test(text)) throw malformed('an embedding in its reply is neither numbers nor base64');
    return Buffer.from(this.#form === 'float' ? `[${numbersOf(text).join(',')}]` : `"${text}"`);
  }
}

const NO_BYTES = Buffer.alloc(0);
const OPENING = Buffer.from('[');
const CLOSING = Buffer.from(']');
const NO_NUMBERS = /[^0-9eE+\-., \t\r\n]/;
/** Both alphabets of base64. */
const BASE64 = /^[\w+/-]+={0,2}$/;

/** `from`: behind `"embedding`. */
function valueAfter(bytes: Buffer, from: number): FoundValue {
  let at = from;
  if (bytes[at] === S) at++;
  if (bytes[at] === undefined) return MORE;
  if (bytes[at] !== QUOTE) return OTHER;
  at = afterSpaces(bytes, at + 1);
  if (bytes[at] === undefined) return MORE;
  if (bytes[at] !== COLON) return OTHER;
  at = afterSpaces(bytes, at + 1);
  let first = at;
  while (isSpace(bytes[first]) || bytes[first] === LIST || bytes[first] === OBJECT) first++;
  const byte = bytes[first];
  if (byte === undefined || (byte === QUOTE && bytes[first + 1] === undefined)) return MORE;
  if (bytes[at] === QUOTE) return { kind: bytes[at + 1] === QUOTE ? 'empty' : 'text', at };
  if (first === at || byte === LIST_END || byte === OBJECT_END) return { kind: 'empty', at: first };
  const isList = bytes[at] === LIST && bytes.subarray(at + 1, first).every(isSpace);
  return isList ? { kind: 'numbers', at } : { kind: 'nested', at: first };
}

const MORE: FoundValue = { kind: 'more', at: 0 };
const OTHER: FoundValue = { kind: 'other', at: 0 };

function afterSpaces(bytes: Buffer, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at++;
  return at;
}

/** Throws UpstreamFailure unless each number is one that a 32-bit float can have. */
function inBase64(text: string): string {
  if (text.length > EMBEDDING_BYTES_MAX) throw tooLarge('an embedding in its reply is too long');
  const floats = Float32Array.from(text.split(','), (one) => (one.trim() === '' ? NaN : Number(one)));
  if (!floats.every(Number.isFinite)) throw malformed('an embedding in its reply is not a list of numbers');
  return Buffer.from(floats.buffer).toString('base64');
}

/** Throws UpstreamFailure unless the text is of 32-bit floats. */
function numbersOf(base64: string): readonly number[] {
  if (base64.length > EMBEDDING_BYTES_MAX) throw tooLarge('an embedding in its reply is too long');
  const bytes = Buffer.from(base64, 'base64');
  const numbers = Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
  if (bytes.length === 0 || bytes.length % 4 !== 0 || !numbers.every(Number.isFinite))
    throw malformed('an embedding in its reply is not the base64 of 32-bit floats');
  return numbers;
}
