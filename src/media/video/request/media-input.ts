import { GatewayError } from '#errors';
import { isObject } from '#wire';
import { outboundUrlFault } from '#security';
import { base64Of, isDataUrl, isWholeDataUrl } from '../../image-file.ts';
import { InputBytes, type BodyParts, type FetchedInputs, isBase64 } from '../../request/input-images.ts';

/** A picture, a video or sound that a request brings as input. */
export interface MediaInput {
  readonly param: string;
  readonly kind: InputKind;
  /** An https URL; null for a file. */
  readonly url: string | null;
  /** The bytes with their media type; null for an address. */
  readonly file: { readonly type: string; readonly content: InputBytes } | null;
}

type InputKind = 'image' | 'video' | 'audio';

const FILE_BYTES_MAX = 20 * 1024 * 1024;

const fault = (param: string, message: string) => new GatewayError('invalid_request', `${param} ${message}`, { param });

/**
 * Reads an input: text, `{url}` or `{b64}`; null if it is absent. `parts`: the long texts of the body. The type of
 * a file comes from its bytes. Only the text of an address is checked, because the provider fetches it. Rejects with
 * GatewayError `invalid_request`.
 */
export async function readInput(
  value: unknown,
  param: string,
  kind: InputKind,
  parts: BodyParts,
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
  const sent = parts.fileOf(text);
  if (sent !== null) return toInput(param, kind, sent, InputBytes.ofFile(sent));
  const bytes = parts.bytesOf(text);
  const isBare = isObject(value) && text === value['b64'];
  if (!isWholeDataUrl(bytes) && (isDataUrl(bytes) || !isBare))
    throw fault(param, 'must be an https URL or a data URL in base64');
  const base64 = base64Of(bytes);
  if (base64.byteLength > Math.ceil(FILE_BYTES_MAX / 3) * 4) throw tooLong(param);
  if (!(await isBase64(base64))) throw fault(param, 'is not base64');
  const head = Buffer.from(base64.toString('latin1', 0, HEAD_CHARS), 'base64');
  return toInput(param, kind, head, InputBytes.ofBase64(base64));
}

const HEAD_CHARS = 64;

/** `head`: at least the first bytes of the file. */
function toInput(param: string, kind: InputKind, head: Buffer, content: InputBytes): MediaInput {
  if (content.file.byteLength > FILE_BYTES_MAX) throw tooLong(param);
  const type = typeOf(head);
  if (type === null || !type.startsWith(kind)) throw fault(param, `is not ${EXPECTED[kind]}, as its bytes show`);
  return { param, kind, url: null, file: { type, content } };
}

/** An input with its bytes. An address is fetched for them. Rejects with GatewayError, see FetchedInputs. */
export async function withFile(input: MediaInput, fetched: FetchedInputs): Promise<MediaInput> {
  const { param, kind, url } = input;
  if (url === null) return input;
  try {
    const bytes = await fetched.fetch(url, FILE_BYTES_MAX);
    return toInput(param, kind, bytes, InputBytes.ofFile(bytes));
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'invalid_request' || error.param === param) throw error;
    throw fault(param, error.message);
  }
}

const tooLong = (param: string) => fault(param, `is larger than ${FILE_BYTES_MAX} bytes`);

const EXPECTED: Readonly<Record<InputKind, string>> = {
  image: 'a PNG, JPEG or WebP file',
  video: 'an MP4 file',
  audio: 'an MP3 or WAV file',
};

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
