// The content of a tool's result and the gateway's neutral parts: one becomes the other, in both directions.

import { isDeepStrictEqual } from 'node:util';
import { BOUNDS, isObject, type JsonObject, type LargeStrings, parseJson } from '#wire';
import type { FilePart, Part, LargeFile } from '#bridge';

/**
 * The result of a `tools/call` as parts: texts, files for binary or linked content, and the structured content unless a
 * text of a moderate length is the same JSON.
 */
export function resultParts({ content, structuredContent }: JsonObject): readonly Part[] {
  const parts = (Array.isArray(content) ? content : []).flatMap(partsOf);
  if (structuredContent === undefined) return parts;
  let remaining = COMPARED_CHARS_MAX;
  for (const part of parts)
    if (part.kind === 'text' && (remaining -= part.text.length) >= 0 && says(part.text, structuredContent))
      return parts;
  return [...parts, { kind: 'data', data: structuredContent }];
}

export function failureText(result: JsonObject): string {
  const parts = resultParts(result);
  const texts = parts.flatMap((part) => (part.kind === 'text' && part.text !== '' ? [part.text] : []));
  const data = parts.find((part) => part.kind === 'data');
  if (texts.length === 0) return data === undefined ? 'The tool failed and gave no reason' : JSON.stringify(data.data);
  return texts.join('\n');
}

function partsOf(item: unknown): readonly Part[] {
  if (!isObject(item)) return [];
  const { type, text, data, uri, resource } = item;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? [{ kind: 'text', text }] : [];
    case 'image':
    case 'audio':
      return typeof data === 'string' ? [file(item, { bytes: data })] : [];
    case 'resource_link':
      return typeof uri === 'string' ? [file(item, { url: uri })] : [];
    case 'resource':
      return isObject(resource) ? embedded(resource) : [];
    default:
      return [];
  }
}

function embedded(resource: JsonObject): readonly Part[] {
  const { text, blob, uri } = resource;
  if (typeof text === 'string') return [{ kind: 'text', text }];
  if (typeof blob !== 'string') return [];
  return [file({ ...resource, name: nameOf(uri) }, { bytes: blob })];
}

function nameOf(uri: unknown): string | null {
  const path = typeof uri === 'string' ? uri.split(/[?#]/, 1)[0]! : '';
  return path.slice(path.lastIndexOf('/') + 1) || null;
}

function file(
  { mimeType, name }: JsonObject,
  { url = null, bytes = null }: Partial<Pick<FilePart, 'url' | 'bytes'>>,
): FilePart {
  return {
    kind: 'file',
    mediaType: typeof mimeType === 'string' ? mimeType : null,
    name: typeof name === 'string' ? name : null,
    url,
    bytes,
  };
}

/** Characters of texts that are parsed, to see whether the structured content is there already. A longer one is not. */
const COMPARED_CHARS_MAX = 256 * 1024;

function says(text: string, value: unknown): boolean {
  if (!/^\s*[[{"\dtfn-]/.test(text)) return false;
  try {
    return isDeepStrictEqual(parseJson(Buffer.from(text), BOUNDS.message), value);
  } catch {
    return false;
  }
}

/**
 * Parts as the content of a tool's result. Adjacent texts become one, data becomes its JSON text, and files become
 * images, audio, blobs or links.
 */
interface PartsContent {
  add(part: Part): void;
  /** Adds a large file. Its size was bounded when it was read, and its base64 is a mark in `large`. */
  addLarge(file: LargeFile, large: LargeStrings): void;
  items(): readonly ContentItem[];
  /** Parts were dropped, because they exceed `charsMax`. */
  readonly cut: boolean;
}

/** An element of a tool result's `content`. */
type ContentItem =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string | null }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | {
      readonly type: 'resource';
      readonly resource: { readonly uri: string; readonly mimeType?: string; readonly blob: string };
    };

/** An element as text, for clients that read only text: the words, the address of a file, or its type. */
export function wordsOfItem(item: ContentItem): string {
  switch (item.type) {
    case 'text':
      return item.text;
    case 'resource_link':
      return item.uri;
    case 'resource':
      return `[${item.resource.uri}]`;
    default:
      return `[${item.mimeType ?? item.type}]`;
  }
}

/** `charsMax`: most characters of all parts that are kept. */
export function createPartsContent(charsMax: number): PartsContent {
  const items: ContentItem[] = [];
  let texts: string[] = [];
  let chars = 0;

  const flush = () => {
    if (texts.length > 0) items.push({ type: 'text', text: texts.join('') });
    texts = [];
  };

  const content: PartsContent & { cut: boolean } = {
    cut: false,
    add(part) {
      const length = lengthOf(part);
      if (content.cut || chars + length > charsMax) {
        content.cut = true;
        return;
      }
      chars += length;
      if (part.kind === 'text') {
        texts.push(part.text);
        return;
      }
      flush();
      items.push(part.kind === 'data' ? { type: 'text', text: JSON.stringify(part.data) } : contentOfFile(part));
    },
    addLarge({ mediaType, name, base64 }, large) {
      flush();
      items.push(elementOf(mediaType, name, large.mark(base64)));
    },
    items() {
      flush();
      return items;
    },
  };
  return content;
}

/** The least length that is counted for an element, so that many small elements are bounded too. */
const LEAST = 64;

function lengthOf(part: Part): number {
  if (part.kind === 'text') return part.text.length;
  if (part.kind === 'data') return LEAST + JSON.stringify(part.data).length;
  return LEAST + (part.bytes ?? part.url ?? '').length + (part.name?.length ?? 0);
}

function contentOfFile({ mediaType, name, url, bytes }: FilePart): ContentItem {
  if (bytes === null) {
    const type = mediaType === null ? {} : { mimeType: mediaType };
    return { type: 'resource_link', uri: url ?? '', name: name ?? lastOf(url ?? '') ?? 'file', ...type };
  }
  // Normalised, because clients refuse a whole result if one blob is not standard base64.
  return elementOf(mediaType, name, Buffer.from(bytes, 'base64').toString('base64'));
}

/** `data`: base64 text. */
function elementOf(mediaType: string | null, name: string | null, data: string): ContentItem {
  const kind = /^(image|audio)\//i.exec(mediaType ?? '')?.[1]?.toLowerCase() as 'image' | 'audio' | undefined;
  if (kind !== undefined) return { type: kind, data, mimeType: mediaType };
  const type = mediaType === null ? {} : { mimeType: mediaType };
  return {
    type: 'resource',
    resource: { uri: `attachment:///${encodeURIComponent((name ?? 'file').toWellFormed())}`, ...type, blob: data },
  };
}

function lastOf(url: string): string | null {
  const path = url.split(/[?#]/, 1)[0]!;
  return path.slice(path.lastIndexOf('/') + 1) || null;
}
