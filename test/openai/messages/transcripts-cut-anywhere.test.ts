import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createChatStreamReader } from '../../../src/openai/stream/chat-stream-reader.ts';
import { createMessageVoice } from '../../../src/openai/messages/message-voice.ts';
import { createChatPieces } from '../../../src/openai/translated/chat-pieces.ts';
import { createSealedThinking } from '../../../src/openai/translated/sealed-thinking.ts';
import { createToolNames } from '../../../src/openai/translated/tool-names.ts';
import type { ChatTail } from '../../../src/openai/reply/chat-end.ts';
import { CONTEXT } from '../support/replies.ts';
import { call, chunk, eventsOf, usage } from '../translated/support/transcript-upstream.ts';

// Transcripts of chat streams as the events of a message, wherever the network cuts them.

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 1_000;
const seals = createSealedThinking(Buffer.alloc(32, 7));
const newVoice = () =>
  createMessageVoice({
    id: 'msg_1',
    model: 'acme/small',
    promptTokens: () => 3,
    names: createToolNames(),
    stopSequences: [],
    thinking: 'shown',
    seals,
    thinkingOf: { account: 'a', model: 'm' },
    requestId: 'r',
  });

/** The events of a message for these reads of a provider's stream. */
function translated(reads: readonly Buffer[]): string {
  const reader = createChatStreamReader(CONTEXT);
  const voice = newVoice();
  const pieces = createChatPieces();
  reader.head(200, { 'content-type': 'text/event-stream' });
  voice.begin();
  let out = voice.take();
  for (const read of reads) {
    const bytes = reader.data([read]);
    if (bytes === null) continue;
    pieces.read(bytes, voice);
    out += voice.take();
  }
  const { before, body, usage: used } = reader.end().tail as ChatTail;
  if (before !== null) pieces.read(before, voice);
  const end = pieces.read(Buffer.from(`data: ${JSON.stringify({ ...body, usage: { ...used, cost: 1 } })}\n\n`), voice);
  voice.end(end!);
  return out + voice.take();
}

interface Event {
  readonly type: string;
  readonly index?: number;
  readonly content_block?: { readonly type: string; readonly id?: string };
  readonly delta?: Readonly<Record<string, string>>;
}
interface Joined {
  readonly type: string;
  readonly id: string | undefined;
  text: string;
}

/** The blocks of a message, by the rules that clients hold its events to. */
function blocksOf(events: string): readonly Joined[] {
  const parsed = events
    .split('\n\n')
    .filter((one) => one !== '')
    .map((one) => {
      const [name, data] = one.split('\n') as [string, string];
      const event = JSON.parse(data.slice('data: '.length)) as Event;
      expect(name).toBe(`event: ${event.type}`);
      return event;
    });
  expect(parsed[0]!.type).toBe('message_start');
  expect(parsed.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop']);
  const blocks: Joined[] = [];
  let open = -1;
  for (const { type, index, content_block: block, delta } of parsed) {
    if (type === 'content_block_start') {
      expect([open, index]).toEqual([-1, blocks.length]);
      open = index!;
      blocks.push({ type: block!.type, id: block!.id, text: '' });
    } else if (type === 'content_block_delta') {
      expect(index).toBe(open);
      blocks[open]!.text += delta!['text'] ?? delta!['thinking'] ?? delta!['partial_json'] ?? '';
    } else if (type === 'content_block_stop') {
      expect(index).toBe(open);
      open = -1;
    }
  }
  expect(open).toBe(-1);
  return blocks;
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('"', '\\', '\n\n', 'data: {', '","x":"', '🌍', '\u2028', '\u0000'),
);
type Said = { readonly thinking?: string; readonly text?: string; readonly call?: number; readonly args?: string };
const said: fc.Arbitrary<Said> = fc.oneof(
  text.map((one) => ({ text: one })),
  text.map((one) => ({ text: one })),
  text.map((one) => ({ thinking: one })),
  fc.record({ call: fc.nat({ max: 2 }), args: text }),
);
const wellFormed = (value: string) => value.toWellFormed();

function transcriptOf(steps: readonly Said[]): string {
  const opened = new Set<number>();
  const chunks = steps.flatMap((step) => {
    if (step.text !== undefined) return [chunk({ content: wellFormed(step.text) })];
    if (step.thinking !== undefined) return [chunk({ reasoning_content: wellFormed(step.thinking) })];
    const index = step.call!;
    const first = !opened.has(index);
    opened.add(index);
    return [call(index, { ...(first ? { id: `id${index}`, name: 'f' } : {}), args: wellFormed(step.args!) })];
  });
  return eventsOf([chunk({ role: 'assistant', content: '' }), ...chunks, chunk({}, 'stop'), usage()]);
}

test('what is said comes whole and in blocks that follow each other, wherever it is cut', () => {
  fc.assert(
    fc.property(fc.array(said, { maxLength: 12 }), fc.array(fc.nat({ max: 400 }), { maxLength: 12 }), (steps, cuts) => {
      const bytes = Buffer.from(transcriptOf(steps));
      const reads: Buffer[] = [];
      let at = 0;
      for (const length of cuts) {
        reads.push(bytes.subarray(at, at + length));
        at = Math.min(bytes.length, at + length);
      }
      reads.push(bytes.subarray(at));
      const whole = blocksOf(translated([bytes]));
      const cut = blocksOf(translated(reads));
      expect(cut).toEqual(whole);
      const all = (type: string) =>
        whole
          .filter((block) => block.type === type)
          .map((block) => block.text)
          .join('');
      const of = (pick: (step: Said) => string | undefined) =>
        steps.map((step) => wellFormed(pick(step) ?? '')).join('');
      expect(all('text')).toBe(of((step) => step.text));
      expect(all('thinking')).toBe(of((step) => step.thinking));
    }),
    { numRuns: RUNS },
  );
});

const GOLDEN = eventsOf([
  chunk({ role: 'assistant', content: '' }),
  chunk({ reasoning_content: 'Hm, ' }),
  chunk({ reasoning_content: 'well.' }),
  ...['I ', 'say "x" 🌍', ' and \\ more'].map((content) => chunk({ content })),
  call(0, { id: 'a', name: 'f', args: '{"q"' }),
  call(0, { args: ':1}' }),
  call(1, { id: 'b', name: 'g', args: '{}' }),
  chunk({}, 'tool_calls'),
  usage(),
]);

test('a transcript is the same message after a cut at every byte', () => {
  const bytes = Buffer.from(GOLDEN);
  const whole = translated([bytes]);
  expect(whole.replaceAll(/tg1\.[\w-]+/g, 'tg1.…')).toMatchInlineSnapshot(`
    "event: message_start
    data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"acme/small","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}

    event: ping
    data: {"type":"ping"}

    event: content_block_start
    data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, "}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"well."}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"tg1.…"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":0}

    event: content_block_start
    data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I "}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"say \\"x\\" 🌍"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" and \\\\ more"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":1}

    event: content_block_start
    data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"q\\""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":2}

    event: content_block_start
    data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":3}

    event: message_delta
    data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":9,"cost":1}}

    event: message_stop
    data: {"type":"message_stop"}

    "
  `);
  for (let at = 1; at < bytes.length; at++)
    expect(blocksOf(translated([bytes.subarray(0, at), bytes.subarray(at)]))).toEqual(blocksOf(whole));
});
