import { isObject } from '#wire';
import type { PromptSize } from '../request/prompt-size.ts';
import type { NativeAsked } from './native-wire.ts';

/** Images of a conversation and the bytes that they are written in. */
interface Pictures {
  images: number;
  bytes: number;
}

/** Parts that hold images, by their type, with the member that has the picture. */
const PICTURES: Readonly<Record<string, string>> = {
  image: 'source',
  input_image: 'image_url',
  computer_screenshot: 'image_url',
};

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

function collect(value: unknown, pictures: Pictures): void {
  if (Array.isArray(value)) for (const element of value as unknown[]) collect(element, pictures);
  else if (isObject(value)) {
    const holder = PICTURES[String(value['type'])];
    if (holder === undefined) {
      for (const member of Object.values(value)) collect(member, pictures);
      return;
    }
    pictures.images++;
    pictures.bytes += bytesOf(value[holder]);
  }
}

/** A picture is text itself, or the `data` of an object. */
function bytesOf(picture: unknown): number {
  const text = isObject(picture) ? picture['data'] : picture;
  return typeof text === 'string' ? Buffer.byteLength(text) : 0;
}
