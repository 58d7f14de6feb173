import { GatewayError } from '#wire';
import type { ContentPart } from '../chat/chat-schema.ts';
import type { Block, Json } from './messages-schema.ts';

export const invalid = (param: string, right: string): GatewayError =>
  new GatewayError('invalid_request', `${param} must be ${right}`, { param });

const IMAGE_TYPE = /^image\/[a-zA-Z0-9.+-]{1,64}$/;
const BASE64 = /^[A-Za-z0-9+/_-]/;

/** Turns an image or a document into a part of a chat message. Throws GatewayError `invalid_request`. */
export function partOfSource(block: Block, at: string): ContentPart {
  const source = (typeof block['source'] === 'object' && block['source'] !== null ? block['source'] : {}) as Json;
  return block.type === 'image' ? image(source, `${at}.source`) : document(block, source, `${at}.source`);
}

function image({ type, media_type: media, data, url }: Json, at: string): ContentPart {
  if (type === 'url') {
    if (typeof url !== 'string' || !/^https:\/\/\S/i.test(url)) throw invalid(`${at}.url`, 'an https URL');
    return { type: 'image_url', image_url: { url } };
  }
  if (type !== 'base64') throw stored(at, type);
  if (typeof media !== 'string' || !IMAGE_TYPE.test(media))
    throw invalid(`${at}.media_type`, 'the type of an image, such as "image/png"');
  if (typeof data !== 'string' || !BASE64.test(data)) throw invalid(`${at}.data`, 'base64');
  return { type: 'image_url', image_url: { url: `data:${media};base64,${data}` } };
}

function document(block: Block, { type, media_type: media, data, url, content }: Json, at: string): ContentPart {
  const title = typeof block['title'] === 'string' ? block['title'] : null;
  switch (type) {
    case 'text':
      if (typeof data !== 'string') throw invalid(`${at}.data`, 'a string');
      return { type: 'text', text: titled(title, data) };
    case 'content':
      return { type: 'text', text: titled(title, typeof content === 'string' ? content : textsOf(content)) };
    case 'base64':
      if (typeof data !== 'string' || !BASE64.test(data)) throw invalid(`${at}.data`, 'base64');
      return file(title, `data:${typeof media === 'string' ? media : 'application/pdf'};base64,${data}`);
    case 'url':
      if (typeof url !== 'string' || !/^https:\/\/\S/i.test(url)) throw invalid(`${at}.url`, 'an https URL');
      return file(title, url);
    default:
      throw stored(at, type);
  }
}

const titled = (title: string | null, text: string): string =>
  title === null ? text : `<document title=${JSON.stringify(title)}>\n${text}\n</document>`;

const file = (title: string | null, data: string): ContentPart => ({
  type: 'file',
  file: { filename: title ?? 'document.pdf', file_data: data },
});

const stored = (at: string, type: unknown): GatewayError =>
  type === 'file'
    ? invalid(`${at}.type`, 'base64 or url: this gateway stores no files')
    : invalid(`${at}.type`, 'base64 or url');

/** All text in blocks. */
function textsOf(blocks: unknown): string {
  if (!Array.isArray(blocks)) return '';
  return blocks.map(wordsOfBlock).join('\n');
}

/**
 * Describes a block that chat models do not know as text, so that a conversation with such a block can continue.
 * Empty for a block that has no meaning outside of its own service.
 */
export function wordsOfBlock(block: unknown): string {
  const { type, text, name, input, content, title, url, source, tool_name: toolName } = (block ?? {}) as Json;
  if (typeof text === 'string') return text;
  switch (type) {
    case 'server_tool_use':
    case 'mcp_tool_use':
      return `[called ${String(name)} with ${JSON.stringify(input ?? {})}]`;
    case 'tool_reference':
      return `[the tool ${String(toolName)} can be called now]`;
    case 'search_result':
    case 'web_search_result':
      return `[${[title, url ?? source].filter((one) => typeof one === 'string').join(': ')}] ${textsOf(content)}`.trim();
    case 'document':
      return typeof title === 'string' ? `[document: ${title}]` : '[document]';
    case 'image':
      return '[image]';
    case 'thinking':
    case 'redacted_thinking':
    case 'compaction_delta':
      return '';
    default:
      if (typeof content === 'string') return content;
      return Array.isArray(content) ? textsOf(content) : '';
  }
}
