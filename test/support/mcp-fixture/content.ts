import { fromJsonSchema, type CallToolResult, type ContentBlock } from '@modelcontextprotocol/server';

/** A PNG of one red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

/** A WAV file without samples. */
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

export const text = (value: string): ContentBlock => ({ type: 'text', text: value });
export const says = (value: string): CallToolResult => ({ content: [text(value)] });

const image: ContentBlock = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri: string, mimeType: string, value: string): ContentBlock => ({
  type: 'resource',
  resource: { uri, mimeType, text: value },
});

/** Tools without arguments that return a fixed result, by name. Scenarios about headers call the first one. */
export const FIXED_RESULTS: Readonly<Record<string, CallToolResult>> = {
  test_simple_text: says('This is a simple text response for testing.'),
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
  test_embedded_resource: {
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  },
  test_multiple_content_types: {
    content: [
      text('Multiple content types test:'),
      image,
      embedded('test://mixed-content-resource', 'application/json', JSON.stringify({ test: 'data', value: 123 })),
    ],
  },
};

/** An input schema with one string. */
export function oneString(name: string) {
  return fromJsonSchema<Record<string, string>>({
    type: 'object',
    properties: { [name]: { type: 'string' } },
    required: [name],
  });
}

/** The text of a message's content. */
export function wordsOf(content: unknown): string {
  const blocks = (Array.isArray(content) ? content : [content]) as readonly { readonly text?: string }[];
  return blocks.map((block) => block.text ?? '').join('');
}
