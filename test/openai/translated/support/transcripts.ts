import fc from 'fast-check';
import type { SettledChat, StartedChat } from '../../../../src/openai/chat/reply/chat-reply.ts';
import { createToolCallIds } from '../../../../src/openai/chat/reply/chat-decoder.ts';
import { createChatStreamDecoder } from '../../../../src/openai/stream/chat-stream-reader.ts';
import { ChunkEvents } from '../../../../src/openai/stream/chunk-output.ts';
import { createTranslatedEncoder } from '../../../../src/openai/translated/translated-encoder.ts';
import type { WireEncoder } from '../../../../src/openai/translated/wire-encoder.ts';
import { CONTEXT } from '../../support/replies.ts';
import { call, chunk, eventsOf, usage } from './transcript-upstream.ts';

/** The events of another wire for these reads of a provider's chat stream. */
export function translated(encoder: WireEncoder, reads: readonly Buffer[]): string {
  const reader = createChatStreamDecoder(CONTEXT, new ChunkEvents(createToolCallIds()));
  reader.head(200, { 'content-type': 'text/event-stream' });
  const opened = { id: 'gen-1', about: { sent: {} } } as unknown as StartedChat;
  const reply = createTranslatedEncoder({
    streamType: 'text/event-stream',
    encoder: () => encoder,
    headers: (chat) => chat,
  })(opened);
  reply.begin();
  let out = '';
  for (const read of reads) {
    const batch = reader.data([read]);
    if (batch !== null) out += reply.events(batch.events, '');
  }
  return out + Buffer.from(reply.end(settledFor(reader.end().result))).toString();
}

/** The settlement of a reply whose cost is told in its usage. */
export const settledFor = (result: NonNullable<SettledChat['result']>): SettledChat => ({
  type: 'settled',
  settlement: { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n },
  pending: true,
  usage: null,
  provider: 'p',
  providerName: 'P',
  receipt: null,
  result: { ...result, usage: { ...result.usage, cost: 1 } },
});

/** One delta of a stream. */
export interface Said {
  readonly thinking?: string;
  readonly text?: string;
  readonly call?: number;
  readonly args?: string;
  /** Thinking that its provider encrypted. */
  readonly sealed?: string;
}

const text = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('"', '\\', '\n\n', 'data: {', '","x":"', '🌍', '\u2028', '\u0000'),
  )
  .map((one) => one.toWellFormed());

/** Deltas of every kind, mixed. */
export const deltas: fc.Arbitrary<readonly Said[]> = fc.array(
  fc.oneof(
    text.map((one) => ({ text: one })),
    text.map((one) => ({ text: one })),
    text.map((one) => ({ thinking: one })),
    fc.record({ call: fc.nat({ max: 2 }), args: text }),
    text.map((one) => ({ sealed: one })),
  ),
  { maxLength: 12 },
);

/** Lengths of reads. */
export const lengths = fc.array(fc.nat({ max: 400 }), { maxLength: 12 });

export function cutAt(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const reads: Buffer[] = [];
  let at = 0;
  for (const length of cuts) {
    reads.push(bytes.subarray(at, at + length));
    at = Math.min(bytes.length, at + length);
  }
  return [...reads, bytes.subarray(at)];
}

export const detailOf = (data: string) => ({ type: 'reasoning.encrypted', data });

/** The stream of a provider that says these deltas. */
export function transcriptOf(steps: readonly Said[]): Buffer {
  const opened = new Set<number>();
  const chunks = steps.map((step) => {
    if (step.text !== undefined) return chunk({ content: step.text });
    if (step.thinking !== undefined) return chunk({ reasoning_content: step.thinking });
    if (step.sealed !== undefined) return chunk({ reasoning_details: [detailOf(step.sealed)] });
    const index = step.call!;
    const first = !opened.has(index);
    opened.add(index);
    return call(index, { ...(first ? { id: `id${index}`, name: `f${index}` } : {}), args: step.args! });
  });
  return Buffer.from(eventsOf([chunk({ role: 'assistant', content: '' }), ...chunks, chunk({}, 'stop'), usage()]));
}

/** All that the steps say of one kind. */
export const sayingOf = (steps: readonly Said[], pick: (step: Said) => string | undefined): string =>
  steps.map((step) => pick(step) ?? '').join('');

export const GOLDEN = Buffer.from(
  eventsOf([
    chunk({ role: 'assistant', content: '' }),
    chunk({ reasoning_content: 'Hm, ' }),
    chunk({ reasoning_content: 'well.' }),
    ...['I ', 'say "x" 🌍', ' and \\ more'].map((content) => chunk({ content })),
    call(0, { id: 'a', name: 'f', args: '{"q"' }),
    call(0, { args: ':1}' }),
    call(1, { id: 'b', name: 'g', args: '{}' }),
    chunk({}, 'tool_calls'),
    usage(),
  ]),
);
