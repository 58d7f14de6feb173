import type { UpstreamFailure } from '#wire';
import { type Cut, encodePartsEvent, type Part, type PartsEnd, type ReplyEnd, type ReplyReader } from '#gateway';
import type { ChatTail } from '../chat/chat-end.ts';
import { chunksOf } from '../chat/chat-decoder.ts';

type Json = Record<string, unknown>;

/**
 * Wraps the reader of a chat stream so that it gives out parts. Its output becomes lines of PartsEvents, and its
 * tail becomes a PartsEnd. Counting, billing and errors stay the same.
 */
export function createPartsReader(reader: ReplyReader): ReplyReader {
  return new PartsReader(reader);
}

class PartsReader implements ReplyReader {
  readonly #reader: ReplyReader;

  constructor(reader: ReplyReader) {
    this.#reader = reader;
  }

  get finished(): boolean {
    return this.#reader.finished ?? false;
  }

  get kept(): number | undefined {
    return this.#reader.kept;
  }

  head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    this.#reader.head(status, headers);
  }

  failure(status: number, body: Uint8Array): UpstreamFailure {
    return this.#reader.failure(status, body);
  }

  data(chunks: readonly Uint8Array[]): Uint8Array | null {
    const bytes = this.#reader.data(chunks);
    return bytes === null ? null : encode(chunksOf(bytes).flatMap(partsOfChunk));
  }

  end(): ReplyEnd {
    return toEnd(this.#reader.end());
  }

  cut(cut: Cut): ReplyEnd {
    return toEnd(this.#reader.cut(cut));
  }
}

function toEnd(end: ReplyEnd): ReplyEnd {
  const { before, body, usage, cut } = end.tail as ChatTail;
  const rest = [...(before === null ? [] : chunksOf(before)), body].flatMap(partsOfChunk);
  return { ...end, rest: encode(rest), tail: toPartsEnd(end, usage, cut) };
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
