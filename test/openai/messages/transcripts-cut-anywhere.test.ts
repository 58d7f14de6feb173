import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMessageEncoder } from '../../../src/openai/messages/encode-reply.ts';
import { EchoFields } from '../../../src/openai/chat/reply/echo-fields.ts';
import { jsonInside } from '../../../src/gateway/bridge/call-event.ts';
import { wireRequest } from '../translated/support/wire-request.ts';
import {
  cutAt,
  deltas,
  detailOf,
  GOLDEN,
  lengths,
  sayingOf,
  transcriptOf,
  translated,
} from '../translated/support/transcripts.ts';
import { call, chunk, eventsOf, usage } from '../translated/support/transcript-upstream.ts';

// Transcripts of chat streams as the events of a message, wherever the network cuts them.

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 150;
const request = wireRequest();
const encoderOf = () =>
  createMessageEncoder({
    id: 'msg_1',
    model: 'acme/small',
    promptTokens: () => 3,
    stopSequences: [],
    thinking: 'shown',
    request,
    managesContext: false,
  });
const eventsFor = (reads: readonly Buffer[]) => translated(encoderOf(), reads);

interface Event {
  readonly type: string;
  readonly index?: number;
  readonly content_block?: { readonly type: string; readonly id?: string; readonly data?: string };
  readonly delta?: Readonly<Record<string, string>>;
}
interface Joined {
  readonly type: string;
  readonly id: string | undefined;
  text: string;
  /** What seals the members of the message in a block of thinking. */
  seal: string | undefined;
}

/**
 * The blocks of a message, by the rules that clients hold its events to. `expect` would take longer than all that is
 * read here.
 */
function blocksOf(events: string): readonly Joined[] {
  const parsed = events
    .split('\n\n')
    .filter((one) => one !== '')
    .map((one) => {
      const [name, data] = one.split('\n') as [string, string];
      const event = JSON.parse(data.slice('data: '.length)) as Event;
      equal(name, `event: ${event.type}`);
      return event;
    });
  equal(parsed[0]!.type, 'message_start');
  deepEqual(
    parsed.slice(-2).map(({ type }) => type),
    ['message_delta', 'message_stop'],
  );
  const blocks: Joined[] = [];
  let open = -1;
  for (const { type, index, content_block: block, delta } of parsed) {
    if (type === 'content_block_start') {
      deepEqual([open, index], [-1, blocks.length]);
      open = index!;
      blocks.push({ type: block!.type, id: block!.id, text: '', seal: block!.data });
    } else if (type === 'content_block_delta') {
      equal(index, open);
      blocks[open]!.seal ??= delta!['signature'];
      blocks[open]!.text += delta!['text'] ?? delta!['thinking'] ?? delta!['partial_json'] ?? '';
    } else if (type === 'content_block_stop') {
      equal(index, open);
      open = -1;
    }
  }
  equal(open, -1);
  return blocks;
}

const unsealed = ({ type, id, text }: Joined) => ({ type, id, text });

/** What goes back to the provider of these blocks. */
function membersIn(blocks: readonly Joined[]): object {
  const kept = new EchoFields(Infinity);
  for (const { type, text, seal } of blocks)
    if (type.endsWith('thinking')) kept.add(request.seals.thought(text, seal!)!);
  return kept.members;
}

test('what is said comes whole and in blocks that follow each other, wherever it is cut', () => {
  fc.assert(
    fc.property(deltas, lengths, (steps, cuts) => {
      const bytes = transcriptOf(steps);
      const whole = blocksOf(eventsFor([bytes]));
      const read = blocksOf(eventsFor(cutAt(bytes, cuts)));
      deepEqual(read.map(unsealed), whole.map(unsealed));
      const wanted = new EchoFields(Infinity);
      for (const { thinking, sealed } of steps)
        wanted.add({ reasoning_content: thinking, reasoning_details: sealed === undefined ? [] : [detailOf(sealed)] });
      deepEqual(membersIn(read), wanted.members);
      const all = (type: string) =>
        whole
          .filter((block) => block.type === type)
          .map((block) => block.text)
          .join('');
      equal(
        all('text'),
        sayingOf(steps, (step) => step.text),
      );
      equal(
        all('thinking'),
        sayingOf(steps, (step) => step.thinking),
      );
    }),
    { numRuns: RUNS },
  );
});

test('a transcript is the same message after a cut at every byte', () => {
  const whole = eventsFor([GOLDEN]);
  expect(whole.replaceAll(/tg1\.[\w-]+/g, 'tg1.…')).toMatchInlineSnapshot(`
    "event: message_start
    data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"acme/small","content":[],"stop_reason":null,"stop_sequence":null,"container":null,"diagnostics":null,"stop_details":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"cache_creation":null,"inference_geo":null,"output_tokens_details":null,"server_tool_use":null,"service_tier":null,"speed":null}}}

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
    data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":[]}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I "}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"say \\"x\\" 🌍"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" and \\\\ more"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":1}

    event: content_block_start
    data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","caller":{"type":"direct"},"name":"f","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"q\\""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":2}

    event: content_block_start
    data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","caller":{"type":"direct"},"name":"g","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":3}

    event: message_delta
    data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"container":null,"stop_details":null},"usage":{"input_tokens":15,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":9,"cache_creation":null,"inference_geo":null,"output_tokens_details":null,"server_tool_use":null,"service_tier":null,"speed":null,"cost":1}}

    event: message_stop
    data: {"type":"message_stop"}

    "
  `);
  const blocks = blocksOf(whole);
  for (let at = 1; at < GOLDEN.length; at++)
    deepEqual(blocksOf(eventsFor([GOLDEN.subarray(0, at), GOLDEN.subarray(at)])), blocks);
});

const END = { finish: 'tool_calls', stopSequence: null, usage: { cost: 1 }, fault: null, tollgate: undefined };

test('a thousand calls beside an unfinished one take time linear in what it says', () => {
  const encoder = encoderOf();
  encoder.begin();
  encoder.call(0, 'a', 'f');
  const { user } = process.cpuUsage();
  encoder.arguments(0, jsonInside(`{"a":"${'x'.repeat(4 * 1024 * 1024)}`));
  for (let index = 1; index < 1_000; index++) {
    encoder.call(index, `id${index}`, 'g');
    encoder.arguments(0, 'y');
  }
  encoder.arguments(0, jsonInside('"}'));
  encoder.end(END);
  const blocks = blocksOf(encoder.take());
  // To read four megabytes each time takes ten seconds of the processor's time.
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(2_000);
  expect(blocks).toHaveLength(1_000);
  expect(blocks[0]!.text).toHaveLength(4 * 1024 * 1024 + 999 + '{"a":""}'.length);
});

test('a message has at most 1,024 calls, because a call without a name counts as no output', () => {
  const calls = Array.from({ length: 3_000 }, (_, index) => call(index, { id: `id${index}` }));
  const events = eventsFor([Buffer.from(eventsOf([chunk({ content: 'a' }), ...calls, chunk({}, 'stop'), usage()]))]);
  expect(blocksOf(events)).toHaveLength(1 + 1_024);
});

test('at most 1,024 blocks wait for a call that does not end', () => {
  const encoder = encoderOf();
  encoder.begin();
  encoder.call(0, 'a', 'f');
  encoder.arguments(0, '{');
  for (let i = 0; i < 550; i++) {
    encoder.text(['a']);
    encoder.thinking('b');
  }
  encoder.arguments(0, '}');
  encoder.end(END);
  const blocks = blocksOf(encoder.take());
  expect([blocks.length, blocks[0]!.text]).toEqual([1_101, '{']);
});
