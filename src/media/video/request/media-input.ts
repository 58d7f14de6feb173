import { GatewayError, isObject, outboundUrlFault } from '#wire';
import { base64Of, isDataUrl, isWholeDataUrl } from '../../reply/found-image.ts';
import { type FetchInput, isBase64 } from '../../request/input-images.ts';

/** A picture, a video or sound that a request brings as input. */
export interface MediaInput {
  /** The path of the field. */
  readonly param: string;
  /** An https URL, or a data URL in base64. */
  readonly url: string;
  readonly kind: Kind;
  /** Its bytes with their type; null for an address. */
  readonly file: { readonly type: string; readonly bytes: Buffer } | null;
}

type Kind = 'image' | 'video' | 'audio';

const FILE_BYTES_MAX = 20 * 1024 * 1024;

const fault = (param: string, message: string) => new GatewayError('invalid_request', `${param} ${message}`, { param });

/**
 * Reads an input: text, `{url}` or `{b64}`; null if it is absent. The type of a data URL comes from its bytes. Only
 * the text of an address is checked, because the provider fetches it. Rejects with GatewayError `invalid_request`.
 */
export async function readInput(
  value: unknown,
  param: string,
  kind: Kind,
  allowPrivate: boolean,
): Promise<MediaInput | null> {
  if (value === null || value === undefined) return null;
  const text = isObject(value) ? (value['url'] ?? value['b64'] ?? value['image_url']) : value;
  if (typeof text !== 'string' || text === '')
    throw fault(param, 'must be an https URL or a data URL, as text, {"url": …} or {"b64": …}');
  if (/^https?:/i.test(text)) {
    const wrong = outboundUrlFault(text, { allowPrivate });
    if (wrong !== null) throw fault(param, wrong);
    return { param, kind, url: text, file: null };
  }
  const given = Buffer.from(text, 'utf8');
  if (!isWholeDataUrl(given) && (isDataUrl(given) || !isObject(value)))
    throw fault(param, 'must be an https URL or a data URL in base64');
  return toInput(param, kind, await bytesOf(base64Of(given), param));
}

async function bytesOf(base64: Buffer, param: string): Promise<Buffer> {
  if (base64.byteLength > Math.ceil(FILE_BYTES_MAX / 3) * 4) throw tooLong(param);
  if (!(await isBase64(base64))) throw fault(param, 'is not base64');
  return Buffer.from(base64.toString('latin1'), 'base64');
}

function toInput(param: string, kind: Kind, bytes: Buffer): MediaInput {
  if (bytes.byteLength > FILE_BYTES_MAX) throw tooLong(param);
  const type = typeOf(bytes);
  if (type === null || !type.startsWith(kind)) throw fault(param, `is not ${EXPECTED[kind]}, as its bytes show`);
  return { param, kind, url: `data:${type};base64,${bytes.toString('base64')}`, file: { type, bytes } };
}

/** An input with its bytes. If it is an address, the bytes are fetched. Rejects with GatewayError `invalid_request`. */
export async function withFile(input: MediaInput, fetchInput: FetchInput): Promise<MediaInput> {
  if (input.file !== null) return input;
  const { param, kind, url } = input;
  try {
    return toInput(param, kind, await fetchInput(url, FILE_BYTES_MAX));
  } catch (error) {
    if (!(error instanceof GatewayError) || error.param === param) throw error;
    throw fault(param, error.message);
  }
}

const tooLong = (param: string) => fault(param, `is larger than ${FILE_BYTES_MAX} bytes`);

const EXPECTED: Readonly<Record<Kind, string>> = {
  image: 'a PNG, JPEG or WebP file',
  video: 'an MP4 file',
  audio: 'an MP3 or WAV file',
};

/** The media type of a file by its first bytes; null for an unknown one. */
function typeOf(bytes: Buffer): string | null {
  const ascii = (from: number, to: number) => bytes.toString('latin1', from, to);
  if (ascii(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (bytes.length > 3 && bytes.readUIntBE(0, 3) === 0xffd8ff) return 'image/jpeg';
  if (ascii(0, 4) === 'RIFF')
    return ascii(8, 12) === 'WEBP' ? 'image/webp' : ascii(8, 12) === 'WAVE' ? 'audio/wav' : null;
  if (ascii(4, 8) === 'ftyp') return 'video/mp4';
  if (ascii(0, 3) === 'ID3' || (bytes.length > 1 && (bytes.readUInt16BE(0) & 0xffe6) === 0xffe2)) return 'audio/mpeg';
  return null;
}
