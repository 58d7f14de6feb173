import { isDeepStrictEqual } from 'node:util';
import { isObject, type JsonObject, parseExact } from '#wire';
import type { FilePart, Part } from '#gateway';

/**
 * The result of a `tools/call` as parts: texts, files for binary or linked content, and the structured content unless a
 * text is the same JSON. Content of an unknown type becomes data.
 */
export function resultParts({ content, structuredContent }: JsonObject): readonly Part[] {
  const parts = (Array.isArray(content) ? content : []).flatMap(partsOf);
  if (
    structuredContent === undefined ||
    parts.some((part) => part.kind === 'text' && says(part.text, structuredContent))
  )
    return parts;
  return [...parts, { kind: 'data', data: structuredContent }];
}

/** The texts of a failed result, joined. */
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
      return [{ kind: 'data', data: item }];
  }
}

function embedded(resource: JsonObject): readonly Part[] {
  const { text, blob, uri } = resource;
  if (typeof text === 'string') return [{ kind: 'text', text }];
  if (typeof blob !== 'string') return [];
  return [file({ ...resource, name: nameOf(uri) }, { bytes: blob })];
}

/** The last part of a URI's path. */
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

function says(text: string, value: unknown): boolean {
  if (!/^\s*[[{"\dtfn-]/.test(text)) return false;
  try {
    return isDeepStrictEqual(parseExact(text), value);
  } catch {
    return false;
  }
}
