import { isObject } from '#wire';
import type { PromptSize } from '../chat/prompt-size.ts';
import type { NativeRequestFacts } from './native-wire.ts';

/** The number of images in a conversation, and the bytes of their base64. */
interface Pictures {
  images: number;
  bytes: number;
}

/**
 * The size of a prompt that goes to a provider as it came: all bytes of the request except those of pictures. It is
 * never too small, because a token has at least one byte.
 */
export function measureNative({ wire, text, asked }: Pick<NativeRequestFacts, 'wire' | 'text' | 'asked'>): PromptSize {
  const prompt = asked[wire.prompt];
  const pictures: Pictures = { images: 0, bytes: 0 };
  collect(prompt, pictures);
  const { tools } = asked;
  return {
    bytes: Math.max(0, Buffer.byteLength(text) - pictures.bytes),
    messages: Array.isArray(prompt) ? prompt.length : 1,
    images: pictures.images,
    audio: false,
    video: false,
    tools: Array.isArray(tools) && tools.length > 0,
    hidden: wire.hidesPrompt(asked),
  };
}

/** Whether `test` is true for an object in `value`, at any depth. */
export function holds(value: unknown, test: (found: Readonly<Record<string, unknown>>) => boolean): boolean {
  if (Array.isArray(value)) return (value as unknown[]).some((element) => holds(element, test));
  return isObject(value) && (test(value) || Object.values(value).some((member) => holds(member, test)));
}

/**
 * Counts the pictures in turns, items and blocks. Pictures in other places, such as the arguments of a tool call,
 * are data that a model reads as text.
 */
function collect(parts: unknown, pictures: Pictures): void {
  if (!Array.isArray(parts)) return;
  for (const part of parts as unknown[]) {
    if (!isObject(part)) continue;
    const { type, content, output, source } = part;
    switch (type) {
      case 'image':
        add(pictures, isObject(source) ? bytesOfSource(source) : 0);
        break;
      case 'input_image':
      case 'computer_screenshot':
        add(pictures, bytesOfDataUrl(part['image_url']));
        break;
      case 'document':
        if (isObject(source) && source['type'] === 'content') collect(source['content'], pictures);
        break;
      case undefined:
      case 'message':
      case 'tool_result':
        collect(content, pictures);
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'computer_call_output':
        collect(Array.isArray(output) ? output : [output], pictures);
        break;
    }
  }
}

function add(pictures: Pictures, bytes: number): void {
  pictures.images++;
  pictures.bytes += bytes;
}

/** The bytes of a picture in base64. Anything else counts as text. */
function bytesOfSource({ type, media_type: media, data }: Readonly<Record<string, unknown>>): number {
  const isPicture = type === 'base64' && typeof media === 'string' && /^image\//i.test(media);
  return isPicture && typeof data === 'string' && BASE64.test(data) ? data.length : 0;
}

function bytesOfDataUrl(url: unknown): number {
  const head = typeof url === 'string' ? DATA_URL.exec(url)?.[0] : undefined;
  if (head === undefined) return 0;
  const data = (url as string).slice(head.length);
  return BASE64.test(data) ? data.length : 0;
}

const DATA_URL = /^data:image\/[\w.+-]{1,64};base64,/i;
const BASE64 = /^[\w+/=-]*$/;
