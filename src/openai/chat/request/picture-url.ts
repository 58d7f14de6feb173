/*
 * Pictures and files as clients write them, in the form that chat providers read: an https URL, or a data URL with a
 * known type, no parameters, and the usual alphabet of base64 without line ends.
 */

/** The head of a data URL. Parameters and capitals are allowed by RFC 2397. */
const HEAD = /^data:([a-z]+\/[a-z0-9.+-]{1,100})?(?:;[\w.+-]{1,64}=[\w.+-]{1,64}){0,4};base64,/i;
const HEAD_CHARS_MAX = 1024;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const WEB = /^https:\/\/\S/i;
const PICTURE = /^image\/[a-z0-9.+-]{1,64}$/;

/** Names of types that are in use beside the registered ones, which are the only ones that many providers know. */
const TYPES: Readonly<Record<string, string>> = { 'image/jpg': 'image/jpeg', 'image/pjpeg': 'image/jpeg' };

interface DataUrl {
  /** In small letters; null if the URL does not say. */
  readonly mediaType: string | null;
  readonly data: string;
}

/** The parts of a data URL in base64; null for any other text. */
export function partsOfDataUrl(url: string): DataUrl | null {
  const head = HEAD.exec(url.slice(0, HEAD_CHARS_MAX));
  if (head === null) return null;
  return { mediaType: head[1]?.toLowerCase() ?? null, data: url.slice(head[0].length) };
}

/** Base64 in its usual alphabet (RFC 4648, 4) without spaces and line ends; null for a text that is no base64. */
export function plainBase64(text: string): string | null {
  if (BASE64.test(text)) return text;
  const plain = text.replaceAll(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/');
  if (!BASE64.test(plain)) return null;
  return plain.padEnd(Math.ceil(plain.length / 4) * 4, '=');
}

/** The URL of a picture for a provider; null for one that is no picture. */
export function pictureUrl(url: string): string | null {
  if (WEB.test(url)) return url;
  const parts = partsOfDataUrl(url);
  return parts === null ? null : pictureOf(parts.mediaType, parts.data);
}

/** The data URL of a picture; null for anything else. `data`: base64, or a data URL, whose type then counts. */
export function pictureOf(mediaType: string | null, data: string): string | null {
  const inside = partsOfDataUrl(data);
  const mediaName = (inside?.mediaType ?? mediaType ?? '').toLowerCase();
  const type = TYPES[mediaName] ?? mediaName;
  const base64 = plainBase64(inside?.data ?? data);
  return base64 === null || !PICTURE.test(type) ? null : `data:${type};base64,${base64}`;
}
