import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EchoFields } from '../../../src/openai/chat/reply/echo-fields.ts';
import { createResponseEncoder } from '../../../src/openai/responses/encode-reply.ts';
import { ToolNames } from '../../../src/openai/translated/tool-names.ts';
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

// Transcripts of chat streams as the events of a response, wherever the network cuts them.

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 150;
/** The second tool is one that takes text. */
function eventsFor(reads: readonly Buffer[]): string {
  const registry = new ToolNames();
  registry.short('f1', null, true);
  return translated(
    createResponseEncoder({
      id: 'resp_1',
      createdAt: 5,
      now: () => 6,
      stored: false,
      previous: null,
      background: false,
      requestBody: { model: 'acme/small' },
      registry,
      thinking: {
        isAsked: true,
        summary: true,
        seals: { seal: (members) => JSON.stringify(members), holds: () => false },
      },
    }),
    reads,
  );
}

interface Item {
  readonly type: string;
  readonly id: string;
  readonly summary?: readonly { readonly text: string }[];
  readonly content?: readonly { readonly text: string }[];
  readonly arguments?: string;
  readonly input?: string;
  readonly encrypted_content?: string;
}
interface Event {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index?: number;
  readonly item_id?: string;
  readonly delta?: string;
  readonly item?: Item;
  readonly response?: { readonly status: string; readonly output: readonly Item[] };
}

const textOf = (item: Item): string =>
  item.input ?? item.arguments ?? (item.content ?? item.summary ?? []).map(({ text }) => text).join('');

/**
 * The output of a response, by the rules that clients hold its events to. `expect` would take longer than all that is
 * read here.
 */
function outputOf(events: string): readonly Item[] {
  const parsed = events
    .split('\n\n')
    .filter((one) => one !== '')
    .map((one) => {
      const [name, data] = one.split('\n') as [string, string];
      const event = JSON.parse(data.slice('data: '.length)) as Event;
      equal(name, `event: ${event.type}`);
      return event;
    });
  for (const [index, event] of parsed.entries()) equal(event.sequence_number, index);
  deepEqual(
    parsed.slice(0, 2).map(({ type }) => type),
    ['response.created', 'response.in_progress'],
  );
  const { type, response } = parsed.at(-1)!;
  equal(type, `response.${response!.status}`);
  const open = new Map<number, { readonly id: string; said: string }>();
  let begun = 0;
  for (const event of parsed.slice(2, -1)) {
    const place = event.output_index!;
    if (event.type === 'response.output_item.added') {
      equal(place, begun++);
      open.set(place, { id: event.item!.id, said: '' });
      continue;
    }
    const item = open.get(place)!;
    if (event.type === 'response.output_item.done') {
      deepEqual(event.item, response!.output[place]);
      // Arguments that are nothing are an empty object at the end.
      equal(item.said || textOf(event.item!), textOf(event.item!));
      open.delete(place);
      continue;
    }
    equal(event.item_id, item.id);
    if (event.type.endsWith('.delta')) item.said += event.delta!;
  }
  deepEqual([open.size, begun], [0, response!.output.length]);
  return response!.output;
}

test('what is said comes whole and in its order, wherever it is cut', () => {
  fc.assert(
    fc.property(deltas, lengths, (steps, cuts) => {
      const bytes = transcriptOf(steps);
      const whole = outputOf(eventsFor([bytes]));
      deepEqual(outputOf(eventsFor(cutAt(bytes, cuts))), whole);
      const wanted = new EchoFields(Infinity);
      for (const { thinking, sealed } of steps)
        wanted.add({ reasoning_content: thinking, reasoning_details: sealed === undefined ? [] : [detailOf(sealed)] });
      const kept = new EchoFields(Infinity);
      for (const { encrypted_content: members } of whole)
        if (members !== undefined) kept.add(JSON.parse(members) as Record<string, unknown>);
      deepEqual(kept.members, wanted.members);
      const all = (type: string) =>
        whole
          .filter((item) => item.type === type)
          .map(textOf)
          .join('');
      equal(
        all('message'),
        sayingOf(steps, (step) => step.text),
      );
      equal(
        all('reasoning'),
        sayingOf(steps, (step) => step.thinking),
      );
    }),
    { numRuns: RUNS },
  );
});

test('a transcript is the same response after a cut at every byte', () => {
  const whole = outputOf(eventsFor([GOLDEN]));
  expect(whole.map((item) => [item.type, textOf(item)])).toEqual([
    ['reasoning', 'Hm, well.'],
    ['message', 'I say "x" 🌍 and \\ more'],
    ['function_call', '{"q":1}'],
    ['function_call', '{}'],
  ]);
  for (let at = 1; at < GOLDEN.length; at++)
    deepEqual(outputOf(eventsFor([GOLDEN.subarray(0, at), GOLDEN.subarray(at)])), whole);
});
