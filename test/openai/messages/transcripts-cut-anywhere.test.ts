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
  const blocks = blocksOf(whole);
  for (let at = 1; at < GOLDEN.length; at++)
    deepEqual(blocksOf(eventsFor([GOLDEN.subarray(0, at), GOLDEN.subarray(at)])), blocks);
});

const END = {
  finish: 'tool_calls',
  stopSequence: null,
  usage: { cost: 1 },
  fault: null,
  tollgate: undefined,
} as const;

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
