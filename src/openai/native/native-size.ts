import { isObject } from '#wire';
import type { PromptSize } from '../request/prompt-size.ts';
import type { NativeAsked } from './native-wire.ts';

/** Images of a conversation and the bytes that they are written in. */
interface Pictures {
  images: number;
  bytes: number;
}

/**
 * The size of a prompt that goes to a provider as it came: every byte of the request but those of pictures. It is never
 * too small, as a token is a byte at least.
 */
export function measureNative({ wire, text, asked }: Pick<NativeAsked, 'wire' | 'text' | 'asked'>): PromptSize {
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
  };
}

/** Whether an object in `value`, at any depth, is one that `test` looks for. */
export function holds(value: unknown, test: (found: Readonly<Record<string, unknown>>) => boolean): boolean {
  if (Array.isArray(value)) return (value as unknown[]).some((element) => holds(element, test));
  return isObject(value) && (test(value) || Object.values(value).some((member) => holds(member, test)));
}

/**
 * Counts the pictures of turns, items and blocks. Those that stand elsewhere are data, which a model reads as text: in
 * what a tool is called with, for example.
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

/** Of base64 alone: other text is read as text. */
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
