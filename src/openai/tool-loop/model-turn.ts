import type { GatewayError } from '#errors';
import type { Frame, SettledFrame } from '#billing/amounts';
import type { Call } from '#call';
import { type CallEvent, type EventBatch, eventBatch } from '#bridge';
import { CALLS_MAX } from '../chat/reply/chat-decoder.ts';
import { type ChatPiece, type ChatResult, resultOf } from '../chat/reply/chat-end.ts';
import { type FinishReason, finishReasonOf } from '../chat/reply/finish-reason.ts';
import { EchoFields, furtherMembers, lengthOf, NOTHING } from '../chat/reply/echo-fields.ts';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as far as the model wrote it. */
  readonly arguments: string;
  /** Members that only the provider understands. */
  readonly further: Readonly<Record<string, unknown>>;
}

export const askedOf = ({ id, name, arguments: argumentText, further }: ToolCall): Record<string, unknown> => ({
  ...further,
  id,
  type: 'function',
  function: { name, arguments: argumentText },
});

export interface TurnEnd {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  /** Members of the message that the provider wants back with its calls, such as its reasoning. */
  readonly echoFields: Readonly<Record<string, unknown>>;
  /** The characters of what the next round adds to the conversation for this turn. */
  readonly length: number;
  readonly finishReason: FinishReason | null;
  /** Why the reply was cut; null if it was not. */
  readonly cut: GatewayError | null;
  /** The message of a reply that is not streamed, without its calls. */
  readonly message: Record<string, unknown>;
  readonly settled: SettledFrame<ChatResult>;
}

interface ModelTurnOptions {
  /** The id that the client knows. */
  readonly id: string;
  /** Earlier turns have produced text. */
  readonly goesOn: boolean;
  /** Only the first turn gives out the head with the provider, and the role. */
  readonly first: boolean;
}

/** Most UTF-16 units that a run adds to a conversation. No context holds so many. */
export const ADDED_MAX = 8 * 1024 * 1024;

/** Separates the text of a turn from that of the turn before. */
export const TURN_GAP = '\n\n';

/**
 * Runs one turn of a model. Text of a stream goes out as it comes. Tool calls are held back, because it is known
 * only at the end who has to make them.
 */
export async function* modelTurn(
  call: Call,
  frames: AsyncIterable<Frame<ChatResult, ChatPiece>>,
  { id, goesOn, first }: ModelTurnOptions,
): AsyncGenerator<Frame<ChatResult, EventBatch>, TurnEnd | null, undefined> {
  const words: string[] = [];
  const calls = createCalls();
  const echoFields = new EchoFields(ADDED_MAX);
  let begun = !first;

  /** The chunk for the client; null if it has nothing for the client. */
  function readChunk(chunk: Record<string, unknown>): Record<string, unknown> | null {
    const [choice] = (chunk['choices'] ?? []) as Record<string, unknown>[];
    if (!choice) return null;
    const { tool_calls: callDeltas, role, ...delta } = (choice['delta'] ?? {}) as Record<string, unknown>;
    if (Array.isArray(callDeltas)) for (const one of callDeltas as Record<string, unknown>[]) calls.collect(one);
    echoFields.add(delta);
    if (typeof delta['content'] === 'string' && delta['content'] !== '') {
      const gap = goesOn && words.length === 0 ? TURN_GAP : '';
      words.push(delta['content']);
      delta['content'] = gap + delta['content'];
    }
    if (Object.values(delta).every((value) => (value ?? '') === '')) {
      if (begun || role === undefined) return null;
      begun = true;
      return { ...chunk, id, choices: [{ index: 0, delta: { role, content: '' }, finish_reason: null }] };
    }
    const spoken = begun ? delta : { role: 'assistant', ...delta };
    begun = true;
    return { ...chunk, id, choices: [{ ...choice, delta: spoken, finish_reason: null }] };
  }
  /** The frame for the client; null if the chunks have nothing for the client. */
  function contentFrame(
    chunks: readonly Record<string, unknown>[],
    byteLength: number,
  ): Frame<ChatResult, EventBatch> | null {
    const events = chunks.flatMap((chunk): CallEvent[] => {
      const one = readChunk(chunk);
      return one === null ? [] : [{ type: 'raw', chunk: one }];
    });
    const data = eventBatch(events, byteLength);
    return data === null ? null : { type: 'data', data };
  }

  for await (const frame of frames) {
    if (frame.type === 'head' && first) yield frame;
    if (frame.type === 'data') {
      const next = contentFrame(chunksIn(frame.data), frame.data.byteLength);
      if (next !== null) yield next;
    }
    if (frame.type !== 'settled') continue;
    const { before, body, cut = null } = resultOf(frame);
    const [choice] = body['choices'] as Record<string, unknown>[];
    const message = (choice?.['message'] ?? {}) as Record<string, unknown>;
    if (call.stream) {
      const chunks = before === null ? [] : chunksIn(before);
      const last = contentFrame([...chunks, { ...body, usage: undefined }], before?.byteLength ?? 1);
      if (last !== null) yield last;
    } else readChunk({ choices: [{ delta: indexed(message) }] });
    const text = words.join('');
    return {
      text,
      calls: calls.all(),
      echoFields: echoFields.members,
      length: text.length + echoFields.length + calls.length(),
      finishReason: finishReasonOf(choice?.['finish_reason']),
      cut,
      message: withoutCalls(message),
      settled: frame,
    };
  }
  return null;
}

/** The chunks of a reply that is read with ChunkObjects. */
const chunksIn = (piece: ChatPiece): readonly Record<string, unknown>[] =>
  piece instanceof Uint8Array ? [] : piece.events.flatMap((event) => (event.type === 'raw' ? [event.chunk] : []));

function withoutCalls(message: Record<string, unknown>): Record<string, unknown> {
  const { tool_calls: _, function_call: __, ...rest } = message;
  return rest;
}

function createCalls() {
  const calls = new Map<
    number,
    { id: string; name: string; arguments: string; further: Readonly<Record<string, unknown>> }
  >();
  let furtherLength = 0;
  return {
    collect(delta: Record<string, unknown>): void {
      const index = delta['index'] as number;
      const { name, arguments: more } = (delta['function'] ?? {}) as Record<string, unknown>;
      let known = calls.get(index);
      if (!known && calls.size >= CALLS_MAX) return;
      if (!known) calls.set(index, (known = { id: String(delta['id']), name: '', arguments: '', further: NOTHING }));
      if (typeof name === 'string') known.name ||= name;
      if (typeof more === 'string') known.arguments += more;
      const further = furtherMembers(delta);
      if (further === NOTHING) return;
      furtherLength += lengthOf(further);
      if (furtherLength <= ADDED_MAX) known.further = { ...known.further, ...further };
    },
    all: (): readonly ToolCall[] => [...calls.values()],
    /** The characters of all arguments and further members. */
    length: () =>
      [...calls.values()].reduce((sum, { arguments: argumentText }) => sum + argumentText.length, furtherLength),
  };
}

function indexed(message: Record<string, unknown>): Record<string, unknown> {
  const { tool_calls: calls, ...rest } = message;
  if (!Array.isArray(calls)) return rest;
  return {
    ...rest,
    tool_calls: (calls as readonly Record<string, unknown>[]).map((call, index) => ({ ...call, index })),
  };
}
