import { GatewayError } from '#wire';
import type { FilePart, Part, TargetRequest, ContentTurn } from '#gateway';
import type { ChatBody, ChatMessage, ContentPart } from '../chat/chat-schema.ts';

const IMAGE = /^image\/[a-zA-Z0-9.+-]{1,64}$/;
const IMAGE_ENDING = /\.(?:png|jpe?g|gif|webp|avif|bmp|tiff?|heic)$/i;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const CONTEXT_ID_MAX = 256;

/**
 * Turns a request in parts into the body of a chat request. Throws GatewayError `unprocessable` for a file that no
 * chat model takes.
 */
export function toChatBody(model: string, ask: TargetRequest): ChatBody {
  const body: ChatBody = { model, messages: ask.turns.map(toMessage), stream: true };
  if (ask.maxTokens !== null) body.max_tokens = ask.maxTokens;
  // A model does not store a conversation, but the same provider may have the beginning of the prompt in its cache.
  if (ask.contextId !== null && ask.contextId.length <= CONTEXT_ID_MAX) body.session_id = ask.contextId;
  return body;
}

function toMessage({ role, parts }: ContentTurn): ChatMessage {
  if (parts.every((part) => part.kind !== 'file')) return { role, content: parts.map(textOf).join('\n') };
  return {
    role,
    content: parts.map((part): ContentPart =>
      part.kind === 'file' ? toImage(part) : { type: 'text', text: textOf(part) },
    ),
  };
}

function textOf(part: Exclude<Part, FilePart>): string {
  return part.kind === 'text' ? part.text : JSON.stringify(part.data);
}

function toImage({ mediaType, name, url, bytes }: FilePart): ContentPart {
  const what = [name, mediaType].filter((word) => word !== null).map((word) => JSON.stringify(word.slice(0, 64)));
  if (bytes !== null && mediaType !== null && IMAGE.test(mediaType)) {
    if (!BASE64.test(bytes))
      throw new GatewayError('invalid_request', `The bytes of the file ${what.join(', ')} are not base64`);
    return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${bytes}` } };
  }
  if (url !== null && isImage(mediaType, url)) return { type: 'image_url', image_url: { url } };
  throw new GatewayError(
    'unprocessable',
    `A chat model cannot take the file${what.length ? ` ${what.join(', ')}` : ''}: it takes images, as base64 with a media type such as image/png or at an https URL, and text`,
  );
}

/** Whether a URL is that of an image. Without a media type, the extension in the URL decides. */
function isImage(mediaType: string | null, url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'https:') return false;
  return mediaType === null ? IMAGE_ENDING.test(parsed.pathname) : mediaType.startsWith('image/');
}
