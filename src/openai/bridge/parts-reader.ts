import { encodePartsEvent, type Part, type PartsEnd, type ReplyEnd, type ReplyReader } from '#gateway';
import type { ChatTail } from '../reply/chat-end.ts';
import { chunksOf } from '../reply/chunks-of.ts';

type Json = Record<string, unknown>;

/**
 * Wraps the reader of a chat stream so that it gives out parts. Its output becomes lines of PartsEvents, and its
 * tail becomes a PartsEnd. Counting, billing and errors stay the same.
 */
export function createPartsReader(reader: ReplyReader): ReplyReader {
  const spoken = (bytes: Uint8Array | null): Uint8Array | null =>
    bytes === null ? null : encode(chunksOf(bytes).flatMap(partsOfChunk));
  const toEnd = (end: ReplyEnd): ReplyEnd => {
    const { before, body, usage, cut } = end.tail as ChatTail;
    const rest = [...(before === null ? [] : chunksOf(before)), body].flatMap(partsOfChunk);
    return { ...end, rest: encode(rest), tail: toPartsEnd(end, usage, cut) };
  };
  return {
    get finished() {
      return reader.finished ?? false;
    },
    get kept() {
      return reader.kept;
    },
    head: (status, headers) => reader.head(status, headers),
    failure: (status, body) => reader.failure(status, body),
    data: (chunks) => spoken(reader.data(chunks)),
    end: () => toEnd(reader.end()),
    cut: (cut) => toEnd(reader.cut(cut)),
  };
}

/** Texts and images of a chunk's first choice. The reasoning of the model is not part of its answer. */
function partsOfChunk(chunk: Json): Part[] {
  const [choice] = (chunk['choices'] ?? []) as readonly Json[];
  const delta = choice?.['delta'] as Json | undefined;
  if (!delta) return [];
  const { content, refusal, images } = delta;
  return [
    ...partsOfContent(content),
    ...partsOfContent(refusal),
    ...(Array.isArray(images) ? images.flatMap(partOfItem) : []),
  ];
}

function partsOfContent(content: unknown): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }];
  return Array.isArray(content) ? content.flatMap(partOfItem) : [];
}

function partOfItem(item: unknown): Part[] {
  if (typeof item !== 'object' || item === null) return [];
  const { text, image_url: image } = item as {
    readonly text?: unknown;
    readonly image_url?: { readonly url?: unknown } | null;
  };
  if (typeof text === 'string') return text === '' ? [] : [{ kind: 'text', text }];
  const url = image?.url;
  if (typeof url !== 'string') return [];
  const data = /^data:([\w.+-]+\/[\w.+-]+);base64,/.exec(url.slice(0, 256));
  const file = { kind: 'file', mediaType: data?.[1] ?? null, name: null } as const;
  return [data ? { ...file, url: null, bytes: url.slice(data[0].length) } : { ...file, url, bytes: null }];
}

function encode(parts: readonly Part[]): Uint8Array | null {
  return parts.length === 0 ? null : Buffer.concat(parts.map((part) => encodePartsEvent({ type: 'part', part })));
}

function toPartsEnd({ outcome, finishReason }: ReplyEnd, usage: ChatTail['usage'], cut: ChatTail['cut']): PartsEnd {
  const failed = outcome === 'free';
  const ended = outcome === 'over_cap' || finishReason === 'length' ? 'length' : 'stop';
  return {
    finish: failed ? 'failed' : cut ? 'cut' : ended,
    error: failed
      ? finishReason === 'error'
        ? 'the model ended with an error'
        : 'the model returned no output'
      : (cut?.message ?? null),
    taskId: null,
    contextId: null,
    promptTokens: count(usage['prompt_tokens']),
    completionTokens: count(usage['completion_tokens']),
  };
}

const count = (value: unknown) => (typeof value === 'number' ? value : 0);
