import { isObject, type JsonObject } from '#wire';
import type { GatewayError } from '#errors';
import type { ContentPart } from '../chat/chat-schema.ts';
import { invalid } from '../translated/chat-turns.ts';
import { pictureOf, plainBase64 } from '../chat/request/picture-url.ts';

/* Files and foreign parts of the Gemini API as parts of a chat message. */

const MEDIA = /^[a-z]+\/[\w.+-]{1,100}$/i;
/** The formats of sounds by the names that media types have for them. */
const SOUNDS: Readonly<Record<string, string>> = { mpeg: 'mp3', 'x-wav': 'wav', wave: 'wav', 'x-m4a': 'm4a' };
/** Files that are kept at Google. */
const KEPT_THERE = /^(?:gs:|https:\/\/generativelanguage\.googleapis\.com\/)/i;

/** A file of a message. Throws GatewayError `invalid_request`. */
export function fileOf(part: JsonObject, at: string): ContentPart | null {
  const { inlineData, fileData } = part;
  if (isObject(inlineData)) return inline(inlineData, `${at}.inlineData`);
  return isObject(fileData) ? addressed(fileData, `${at}.fileData`) : null;
}

function inline({ mimeType, data, displayName }: JsonObject, at: string): ContentPart {
  const base64 = data === '' ? '' : typeof data === 'string' ? plainBase64(data) : null;
  if (base64 === null) throw invalid(`${at}.data`, 'base64');
  const media = mediaOf(mimeType, at);
  const [kind, format] = media.split('/') as [string, string];
  const url = `data:${media};base64,${base64}`;
  switch (kind) {
    case 'image':
      return { type: 'image_url', image_url: { url: pictureOf(media, base64) ?? url } };
    case 'audio':
      return { type: 'input_audio', input_audio: { data: base64, format: SOUNDS[format] ?? format } };
    case 'video':
      return { type: 'video_url', video_url: { url } };
    case 'text':
      return { type: 'text', text: Buffer.from(base64, 'base64').toString('utf8') };
    default:
      return { type: 'file', file: { filename: nameOf(displayName, format), file_data: url } };
  }
}

function addressed({ mimeType, fileUri, displayName }: JsonObject, at: string): ContentPart {
  if (typeof fileUri !== 'string' || !/^https:\/\/\S/i.test(fileUri) || KEPT_THERE.test(fileUri))
    throw refusal(at, fileUri);
  const media = mimeType === undefined || mimeType === null ? 'application/pdf' : mediaOf(mimeType, at);
  const [kind, format] = media.split('/') as [string, string];
  const url = fileUri;
  if (kind === 'image') return { type: 'image_url', image_url: { url } };
  if (kind === 'audio') return { type: 'audio_url', audio_url: { url } };
  if (kind === 'video') return { type: 'video_url', video_url: { url } };
  return { type: 'file', file: { filename: nameOf(displayName, format), file_data: url } };
}

function mediaOf(mimeType: unknown, at: string): string {
  const media = typeof mimeType === 'string' ? mimeType.split(';', 1)[0]!.trim().toLowerCase() : '';
  if (!MEDIA.test(media)) throw invalid(`${at}.mimeType`, 'a media type such as "image/png"');
  return media;
}

const nameOf = (givenName: unknown, format: string): string =>
  typeof givenName === 'string' && givenName !== '' && givenName.length <= 256
    ? givenName
    : `document.${format.slice(0, 16)}`;

const refusal = (at: string, uri: unknown): GatewayError =>
  typeof uri === 'string' && KEPT_THERE.test(uri)
    ? invalid(`${at}.fileUri`, 'an https URL of the public internet: this gateway stores no files. Or send inlineData')
    : invalid(`${at}.fileUri`, 'an https URL');

/**
 * A part that chat models do not know, as text, so that a conversation with such a part can continue. null if the part
 * has no meaning outside of its own service.
 */
export function wordsOfPart(part: JsonObject): string | null {
  const { executableCode: code, codeExecutionResult: result } = part;
  if (isObject(code))
    return `\`\`\`${String(code['language'] ?? '').toLowerCase()}\n${String(code['code'] ?? '')}\n\`\`\``;
  if (isObject(result)) return `[result of the code: ${String(result['output'] ?? result['outcome'] ?? '')}]`;
  const { functionCall: call } = part;
  return isObject(call) ? `[called ${String(call['name'])} with ${JSON.stringify(call['args'] ?? {})}]` : null;
}
