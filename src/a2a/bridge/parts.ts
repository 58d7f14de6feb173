import { isObject, type JsonObject } from '#wire';
import type { Part } from '#bridge';

/** Turns the parts of a message or an artifact of 1.0 into neutral parts. Unknown kinds are skipped. */
export function fromA2aParts(parts: unknown): readonly Part[] {
  return Array.isArray(parts) ? parts.flatMap((part: unknown) => (isObject(part) ? fromPart(part) : [])) : [];
}

function fromPart({ text, raw, url, data, mediaType, filename, ...rest }: JsonObject): readonly Part[] {
  if (typeof text === 'string') return [{ kind: 'text', text }];
  const facts = {
    mediaType: typeof mediaType === 'string' ? mediaType : null,
    name: typeof filename === 'string' ? filename : null,
  };
  if (typeof raw === 'string') return [{ kind: 'file', ...facts, url: null, bytes: raw }];
  if (typeof url === 'string') return [{ kind: 'file', ...facts, url, bytes: null }];
  return data === undefined || rest['kind'] !== undefined ? [] : [{ kind: 'data', data }];
}

export function toA2aPart(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { text: part.text };
    case 'data':
      return { data: part.data, mediaType: 'application/json' };
    case 'file': {
      const { mediaType, name, url, bytes } = part;
      return {
        ...(bytes === null ? { url: url ?? '' } : { raw: bytes }),
        ...(mediaType === null ? {} : { mediaType }),
        ...(name === null ? {} : { filename: name }),
      };
    }
  }
}

export const wordsOf = (parts: readonly Part[]): string => parts.map(wordOf).join(' ');

function wordOf(part: Part): string {
  if (part.kind === 'text') return part.text;
  return part.kind === 'data' ? JSON.stringify(part.data) : `[${part.name ?? part.mediaType ?? 'file'}]`;
}
