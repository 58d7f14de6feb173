import { describe, expect, test } from 'vitest';
import { measurePrompt } from '../../src/openai/chat/request/prompt-size.ts';
import type { ContentPart } from '../../src/openai/chat/chat-schema.ts';

const URL = 'data:image/png;base64,AAAA';
const image = { type: 'image_url', image_url: { url: URL } };
const text = { type: 'text', text: 'hi' };
const imagesOf = (message: object, more: object = {}) =>
  measurePrompt({ model: 'm', messages: [{ role: 'user', content: 'hi', ...message }], ...more }).images;
const inParts = (...content: object[]) => imagesOf({ content: content as ContentPart[] });

describe('an image counts wherever a server may find it', () => {
  test.each([
    ['a part', [image], 1],
    ['two parts', [image, text, image], 2],
    ['a text with an image', [{ ...text, image_url: { url: URL } }], 1],
    ['a text with an image of another name', [{ ...text, image: URL }], 1],
    ['a text with an image in other letters', [{ ...text, Image: URL }], 1],
    ['a file with images', [{ type: 'file', file: {}, input_images: [URL, URL] }], 2],
    ['an image of two names', [{ ...image, image: URL }], 1],
    ['no image', [text], 0],
    ['an image that is null', [{ ...text, image_url: null }], 0],
  ])('in the content: %s', (_what, content, images) => {
    expect(inParts(...content)).toBe(images);
  });

  test.each([
    [{ images: [URL, URL, URL] }, 3],
    [{ image: URL }, 1],
    [{ IMAGE_URL: URL }, 1],
    [{ images: [] }, 0],
    [{ images: null, name: 'image' }, 0],
  ])('in a message: %j', (message, images) => {
    expect(imagesOf(message)).toBe(images);
  });

  test.each([
    [{ images: [URL, URL] }, 2],
    [{ image_data: [{ data: 'AAAA', id: 1 }] }, 1],
    [{ image_config: { aspect_ratio: '1:1' } }, 0],
    [{ model: 'image' }, 0],
  ])('beside the messages: %j', (more, images) => {
    expect(imagesOf({}, more)).toBe(images);
  });
});
