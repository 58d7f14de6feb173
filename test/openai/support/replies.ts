import type { ReplyEnd, ReplyReader } from '#call';
import type { ChatResult, ReplyContext } from '../../../src/openai/chat/reply/chat-end.ts';
import { createChatStreamReader, type StreamReaderOptions } from '../../../src/openai/stream/chat-stream-reader.ts';

export const CONTEXT: ReplyContext = {
  callId: 'gen-1',
  service: 'acme/small',
  provider: 'Acme',
  rates: { completion: 2_000_000n },
  budget: { promptTokensMax: 500, completionCap: 1000, completionTokensMax: 1000, keptBy: 'provider' },
  size: {
    bytes: 40,
    added: 0,
    messages: 1,
    images: 0,
    audio: false,
    video: false,
    file: false,
    tools: false,
    hidden: false,
  },
  created: 1_800_000_000,
  replyBytesMax: 64 * 1024 * 1024,
  readFor: 'reader',
  asObject: true,
};

/** A provider's chunk with the given choices. */
export function chunkOf(
  choices: readonly unknown[],
  rest: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    id: 'chatcmpl-9',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'upstream-small',
    choices,
    ...rest,
  };
}

export const delta = (content: string, finish: string | null = null, index = 0) => ({
  index,
  delta: { content },
  finish_reason: finish,
});

export const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };

/** Events as most providers write them. */
export function events(...items: readonly unknown[]): string {
  return items.map((item) => `data: ${typeof item === 'string' ? item : JSON.stringify(item)}\n\n`).join('');
}

/** A usual stream: role, words, finish, usage, end. */
export function usualStream(words: readonly string[] = ['Hel', 'lo', ' Grüße 🌍']): string {
  return events(
    chunkOf([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
    ...words.map((word) => chunkOf([delta(word)])),
    chunkOf([{ index: 0, delta: {}, finish_reason: 'stop' }]),
    chunkOf([], { usage: USAGE }),
    '[DONE]',
  );
}

export interface Outcome {
  /** What went to the client before the end, and what is left for after the settlement. */
  readonly sent: string;
  readonly end: ReplyEnd<ChatResult> | null;
  readonly result: ChatResult | null;
  readonly error: Error | null;
}

/** The bytes that a reply on the chat wire, or on a native one, has before its end. */
export const textBefore = ({ before }: Pick<ChatResult, 'before'>): string =>
  before instanceof Uint8Array ? Buffer.from(before).toString() : '';

/** Feeds a reader to its end. */
export function feed(
  reader: ReplyReader<ChatResult>,
  chunks: readonly Uint8Array[],
  headers: Record<string, string> = { 'content-type': 'text/event-stream' },
): Outcome {
  const sent: Uint8Array[] = [];
  try {
    reader.head(200, headers);
    for (const chunk of chunks) {
      const out = reader.data([chunk]);
      if (out) sent.push(out);
    }
    const end = reader.end();
    return { sent: Buffer.concat(sent).toString(), end, result: end.result, error: null };
  } catch (error) {
    return { sent: Buffer.concat(sent).toString(), end: null, result: null, error: error as Error };
  }
}

export function stream(
  text: string | Buffer,
  context: ReplyContext = CONTEXT,
  options: StreamReaderOptions = {},
): Outcome {
  return feed(createChatStreamReader(context, options), [Buffer.from(text)]);
}

export interface SentChunk {
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly content?: string; readonly tool_calls?: unknown };
    readonly finish_reason: unknown;
  }[];
  readonly [member: string]: unknown;
}

/** The objects of the data lines in what was sent. */
export function chunksIn(sent: string): SentChunk[] {
  return sent
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.replace(/^data: /, '')) as SentChunk);
}

/** All text of one choice, over what was sent and the last chunk. */
export function textOf(outcome: Outcome, index = 0): string {
  const all = [...chunksIn(outcome.sent), ...(outcome.result ? [outcome.result.body] : [])] as {
    choices: { index: number; delta: { content?: string } }[];
  }[];
  return all
    .flatMap((chunk) => chunk.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? '')
    .join('');
}
