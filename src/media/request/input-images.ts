import { GatewayError } from '#errors';
import { isObject, ownTurn } from '#wire';
import type { PieceSource } from '#http';
import {
  checkBase64,
  headOf,
  isDataUrl,
  isWholeDataUrl,
  base64Of,
  type ImageHead,
  readImageHead,
} from '../image-file.ts';

export interface InputImage extends ImageHead {
  readonly content: InputBytes;
}

/** An image of a request, before it is read. `param` is its place in the body. */
export type InputSource = { readonly param: string } & (
  | { readonly kind: 'base64'; readonly text: Buffer }
  | { readonly kind: 'file'; readonly bytes: Buffer }
  | { readonly kind: 'url'; readonly url: string }
);

/** The files that the gateway fetches for one request. They are in memory until `release`. */
export interface FetchedInputs {
  /**
   * Fetches an untrusted URL. Rejects with GatewayError: `invalid_request` with the reason, but no address, or
   * `rate_limit_exceeded`, `service_unavailable` if there is no memory for the file.
   */
  fetch(url: string, bytesMax: number): Promise<Buffer>;
  release(): void;
}

/** Begins to fetch for a request of this account. `network`: of the client; null if it is not known. */
export type FetchInputs = (account: string, network: string | null) => FetchedInputs;

export interface EditInputs {
  /** Images to edit, without the mask. */
  readonly count: number;
  readonly hasMask: boolean;
  /** Images that are charged. Vendors bill the mask as one more. */
  readonly charged: number;
  /** Width to height of the first image, such as `1024:768`; null before `load`. */
  readonly ratio: string | null;
  /**
   * Fetches and checks all of them. Rejects with GatewayError: `invalid_request` that names the image, or
   * `rate_limit_exceeded`, `service_unavailable` if there is no memory for it.
   */
  load(): Promise<void>;
  /** Gives back the memory of fetched images. To be called when the call has ended. */
  release(): void;
  /** In the order of the request. Call `load` before. */
  readonly images: readonly InputImage[];
  readonly mask: InputImage | null;
}

export const INPUT_IMAGES_MAX = 16;
const INPUT_BYTES_MAX = 20 * 1024 * 1024;
/** The most bytes of all fetched images of a request. Images inside the body are bounded with the body. */
const FETCHED_BYTES_MAX = 32 * 1024 * 1024;
/** A file of a few bytes can claim more pixels than a provider has memory for. */
const PIXELS_MAX = 50_000_000;

const fault = (param: string, message: string) => new GatewayError('invalid_request', `${param} ${message}`, { param });

/** The texts of a body that were too long to be parsed with it, and its files. */
export interface BodyParts {
  /** The bytes of a text of the parsed body. For a long text, the body has only a mark. */
  bytesOf(text: string): Buffer;
  /** The file that a text of the parsed body stands for; null for an ordinary text. */
  fileOf(text: string): Buffer | null;
}

/** The image at `param`: a text, or an object with `b64`, `url` or `image_url`. */
export function inputSource(value: unknown, param: string, parts: BodyParts): InputSource {
  if (typeof value === 'string') return sourceOf(value, param, parts, 'any');
  const { b64, url, image_url: inOpenai } = value as Readonly<Record<string, unknown>>;
  const sources = [b64, url, inOpenai].filter((one) => one !== undefined && one !== null);
  if (sources.length !== 1) throw fault(param, 'must have either b64 or url');
  if (typeof b64 === 'string') return sourceOf(b64, `${param}.b64`, parts, 'base64');
  const text = isObject(sources[0]) ? sources[0]['url'] : sources[0];
  if (typeof text !== 'string') throw fault(param, 'must have either b64 or url');
  return sourceOf(text, `${param}.${inOpenai === undefined ? 'url' : 'image_url'}`, parts, 'url');
}

function sourceOf(text: string, param: string, parts: BodyParts, as: 'any' | 'base64' | 'url'): InputSource {
  const bytes = parts.fileOf(text);
  if (bytes !== null) return { kind: 'file', bytes, param };
  const content = parts.bytesOf(text);
  if (isDataUrl(content)) {
    if (!isWholeDataUrl(content)) throw fault(param, 'must be a data URL in base64, such as data:image/png;base64,…');
    return { kind: 'base64', text: base64Of(content), param };
  }
  const isUrl = /^https?:/i.test(content.toString('latin1', 0, 6));
  if (as !== 'base64' && isUrl) return { kind: 'url', url: content.toString('utf8'), param };
  if (as === 'url') throw fault(param, 'must be an https URL or a data URL');
  if (isUrl) throw fault(param, 'must be base64 or a data URL. Send an address as url');
  return { kind: 'base64', text: content, param };
}

/** The images of a request. Nothing is done with them before `load`. `begin`: called if there is something to fetch. */
export function editInputs(
  sources: readonly InputSource[],
  maskSource: InputSource | null,
  begin: () => FetchedInputs,
): EditInputs {
  return new SentInputs(sources, maskSource, begin);
}

class SentInputs implements EditInputs {
  readonly count: number;
  readonly hasMask: boolean;
  readonly charged: number;
  readonly #sources: readonly InputSource[];
  readonly #maskSource: InputSource | null;
  readonly #begin: () => FetchedInputs;
  #fetched: FetchedInputs | null = null;
  #loaded: { readonly images: readonly InputImage[]; readonly mask: InputImage | null } | null = null;

  constructor(sources: readonly InputSource[], maskSource: InputSource | null, begin: () => FetchedInputs) {
    this.count = sources.length;
    this.hasMask = maskSource !== null;
    this.charged = this.count + (this.hasMask ? 1 : 0);
    this.#sources = sources;
    this.#maskSource = maskSource;
    this.#begin = begin;
  }

  get ratio(): string | null {
    const first = this.#loaded?.images[0];
    return first === undefined ? null : `${first.width}:${first.height}`;
  }

  get images(): readonly InputImage[] {
    return this.#ready().images;
  }

  get mask(): InputImage | null {
    return this.#ready().mask;
  }

  async load(): Promise<void> {
    let remaining = FETCHED_BYTES_MAX;
    const fetchWithin: FetchedInputs['fetch'] = async (url, bytesMax) => {
      this.#fetched ??= this.#begin();
      const bytes = await this.#fetched.fetch(url, Math.max(1, Math.min(bytesMax, remaining)));
      remaining -= bytes.byteLength;
      return bytes;
    };
    const all: InputImage[] = [];
    try {
      for (const source of [...this.#sources, ...(this.#maskSource === null ? [] : [this.#maskSource])]) {
        all.push(await read(source, fetchWithin));
      }
    } catch (error) {
      this.release();
      throw error;
    }
    this.#loaded = { images: all.slice(0, this.count), mask: all[this.count] ?? null };
  }

  release(): void {
    this.#fetched?.release();
  }

  #ready() {
    if (this.#loaded === null) throw new Error('the images of the request are not loaded');
    return this.#loaded;
  }
}

/** The inputs of a quote request: a number of images, and perhaps a mask, without their content. */
export const countedInputs = (count: number, hasMask: boolean): EditInputs => ({
  count,
  hasMask,
  charged: count + (hasMask ? 1 : 0),
  ratio: null,
  load: () => Promise.resolve(),
  release() {},
  images: [],
  mask: null,
});

async function read(source: InputSource, fetch: FetchedInputs['fetch']): Promise<InputImage> {
  const { param } = source;
  if (source.kind === 'base64') {
    const { text } = source;
    if ((text.byteLength / 4) * 3 > INPUT_BYTES_MAX + 2) throw tooLong(param);
    if (!(await isBase64(text)))
      throw fault(param, 'is not valid base64: it has 4 characters for each 3 bytes, and padding');
    return image(headOf(text), param, InputBytes.ofBase64(text));
  }
  const bytes = source.kind === 'file' ? source.bytes : await fetched(source.url, param, fetch);
  if (bytes.byteLength > INPUT_BYTES_MAX) throw tooLong(param);
  return image(readImageHead(bytes), param, InputBytes.ofFile(bytes));
}

async function fetched(url: string, param: string, fetch: FetchedInputs['fetch']): Promise<Buffer> {
  try {
    return await fetch(url, INPUT_BYTES_MAX);
  } catch (error) {
    throw error instanceof GatewayError && error.code === 'invalid_request' ? fault(param, error.message) : error;
  }
}

function image(head: ImageHead | null, param: string, content: InputBytes): InputImage {
  if (head === null) throw fault(param, 'is no PNG, JPEG or WebP file');
  if (head.width * head.height > PIXELS_MAX)
    throw fault(param, `has ${head.width}x${head.height} pixels; at most ${PIXELS_MAX} are taken`);
  return { ...head, content };
}

const tooLong = (param: string) => fault(param, `is larger than ${INPUT_BYTES_MAX} bytes`);

/** Checks a text. A long one is checked in several turns of the event loop. */
export async function isBase64(text: Buffer): Promise<boolean> {
  const checking = checkBase64(text);
  for (;;) {
    const { done, value } = checking.next();
    if (done) return value;
    await ownTurn();
  }
}

/**
 * The bytes of an input, as the request brought them: the file itself, or its base64. They stay in the memory of the
 * request's body. The other form is made while it is sent.
 */
export class InputBytes {
  readonly file: PieceSource;
  /** The base64 of the file, as ASCII. */
  readonly base64: PieceSource;

  private constructor(file: PieceSource, base64: PieceSource) {
    this.file = file;
    this.base64 = base64;
  }

  static ofFile(bytes: Buffer): InputBytes {
    const length = Math.ceil(bytes.byteLength / 3) * 4;
    return new InputBytes(new Converted(bytes, bytes.byteLength), new Converted(bytes, length, encode, FILE_PIECE));
  }

  /** `base64`: complete and valid, with padding. */
  static ofBase64(base64: Buffer): InputBytes {
    const padding = base64.at(-1) !== PADDING ? 0 : base64.at(-2) === PADDING ? 2 : 1;
    const length = (base64.byteLength / 4) * 3 - padding;
    return new InputBytes(
      new Converted(base64, length, decode, BASE64_PIECE),
      new Converted(base64, base64.byteLength),
    );
  }
}

const PADDING = 0x3d;
/** Bytes of a file that are encoded at once, and of base64 that are decoded at once: whole groups of 3 and 4. */
const FILE_PIECE = 48 * 1024;
const BASE64_PIECE = 64 * 1024;
const encode = (piece: Buffer) => Buffer.from(piece.toString('base64'), 'latin1');
const decode = (piece: Buffer) => Buffer.from(piece.toString('latin1'), 'base64');
const same = (piece: Buffer) => piece;

class Converted implements PieceSource {
  readonly byteLength: number;
  readonly #from: Buffer;
  readonly #convert: (piece: Buffer) => Uint8Array;
  readonly #pieceBytes: number;

  constructor(
    from: Buffer,
    byteLength: number,
    convert: (piece: Buffer) => Uint8Array = same,
    pieceBytes = FILE_PIECE,
  ) {
    this.byteLength = byteLength;
    this.#from = from;
    this.#convert = convert;
    this.#pieceBytes = pieceBytes;
  }

  *[Symbol.iterator](): Iterator<Uint8Array> {
    const from = this.#from;
    for (let at = 0; at < from.byteLength; at += this.#pieceBytes)
      yield this.#convert(from.subarray(at, at + this.#pieceBytes));
  }
}
