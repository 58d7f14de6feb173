import { describe, expect, it } from 'vitest';
import { createChatStreamReader } from '../../src/openai/stream/chat-stream-reader.ts';
import { chunkOf, chunksIn, CONTEXT, events, stream } from './support/replies.ts';

type Call = { index?: number; id?: string; type?: string; function?: { name?: string; arguments?: unknown } };

/** What the openai SDK makes of the deltas: joined by index. */
function joined(deltas: readonly (readonly Call[])[]): {
  deltas: Call[];
  calls: { id: string; name: string; arguments: string }[];
} {
  const body = events(
    ...deltas.map((calls) => chunkOf([{ index: 0, delta: { tool_calls: calls }, finish_reason: null }])),
    chunkOf([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
    '[DONE]',
  );
  const outcome = stream(body);
  expect(outcome.error).toBeNull();
  const last = outcome.result!.body as unknown as ReturnType<typeof chunksIn>[number];
  const out = [...chunksIn(outcome.sent), last].flatMap(
    (chunk) => (chunk.choices[0]!.delta.tool_calls ?? []) as Call[],
  );
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const call of out) {
    const entry = (calls[call.index!] ??= { id: '', name: '', arguments: '' });
    entry.id += call.id ?? '';
    entry.name += call.function?.name ?? '';
    entry.arguments += (call.function?.arguments as string | undefined) ?? '';
  }
  return { deltas: out, calls };
}

const first = { id: 'a', name: 'look', arguments: '{"q":1}' };
const second = { id: 'b', name: 'find', arguments: '{"r":2}' };

describe('streamed tool calls', () => {
  it.each<[string, Call[][]]>([
    [
      'in the usual form',
      [
        [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '' } }],
        [{ index: 0, function: { arguments: '{"q"' } }],
        [{ index: 0, function: { arguments: ':1}' } }],
        [{ index: 1, id: 'b', type: 'function', function: { name: 'find', arguments: '' } }],
        [{ index: 1, function: { arguments: '{"r":2}' } }],
      ],
    ],
    [
      'with indexes from 1',
      [
        [{ index: 1, id: 'a', function: { name: 'look', arguments: '{"q":1}' } }],
        [{ index: 2, id: 'b', function: { name: 'find', arguments: '{"r":2}' } }],
      ],
    ],
    [
      'without indexes',
      [
        [{ id: 'a', function: { name: 'look', arguments: '{"q"' } }],
        [{ id: 'a', function: { arguments: ':1}' } }],
        [{ id: 'b', function: { name: 'find', arguments: '{"r":' } }],
        [{ function: { arguments: '2}' } }],
      ],
    ],
    [
      'with one index for all',
      [
        [{ index: 0, id: 'a', function: { name: 'look', arguments: '{"q":1}' } }],
        [{ index: 0, id: 'b', function: { name: 'find', arguments: '{"r"' } }],
        [{ index: 0, function: { arguments: ':2}' } }],
      ],
    ],
    [
      'with id, type and name on every delta',
      [
        [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"q"' } }],
        [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: ':1}' } }],
        [{ index: 1, id: 'b', type: 'function', function: { name: 'find', arguments: '{"r":2}' } }],
      ],
    ],
    [
      'with arguments as objects, two in one delta',
      [
        [
          { index: 0, id: 'a', function: { name: 'look', arguments: { q: 1 } } },
          { index: 1, id: 'b', function: { name: 'find', arguments: { r: 2 } } },
        ],
      ],
    ],
    [
      'interleaved',
      [
        [{ index: 0, id: 'a', function: { name: 'look', arguments: '{"q"' } }],
        [{ index: 1, id: 'b', function: { name: 'find', arguments: '{"r"' } }],
        [{ index: 0, function: { arguments: ':1}' } }],
        [{ index: 1, function: { arguments: ':2}' } }],
      ],
    ],
    [
      'with the name after the id',
      [
        [{ index: 0, id: 'a', type: 'function', function: { arguments: '' } }],
        [{ index: 0, function: { name: 'look' } }],
        [{ index: 0, function: { arguments: '{"q":1}' } }],
        [{ index: 1, id: 'b', type: 'function', function: { name: '', arguments: '' } }],
        [{ index: 1, function: { name: 'find', arguments: '{"r":2}' } }],
      ],
    ],
    [
      'with the name after the arguments, and without indexes',
      [
        [{ id: 'a', type: 'function' }],
        [{ function: { arguments: '{"q"' } }],
        [{ function: { name: 'look', arguments: ':1}' } }],
        [{ id: 'b', function: { arguments: '{"r":2}' } }],
        [{ id: 'b', function: { name: 'find' } }],
      ],
    ],
    [
      'with the id after a delta without a name',
      [
        [{ index: 0, function: { arguments: '' } }],
        [{ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"q":1}' } }],
        [{ index: 1, id: 'b', function: { name: 'find', arguments: '{"r":2}' } }],
      ],
    ],
  ])('%s join to the same calls', (_name, deltas) => {
    const { deltas: out, calls } = joined(deltas);
    expect(calls).toEqual([first, second]);
    const seen = new Set<number>();
    for (const call of out) {
      if (seen.has(call.index!)) {
        expect(call).not.toHaveProperty('id');
        expect(call).not.toHaveProperty('type');
        expect(call.function).not.toHaveProperty('name');
      } else expect(call).toMatchObject({ id: expect.any(String), type: 'function' });
      seen.add(call.index!);
    }
    expect([...seen]).toEqual([0, 1]);
  });

  it('get an id when the provider gives none', () => {
    const { calls } = joined([
      [{ function: { name: 'look', arguments: '{}' } }],
      [{ function: { name: 'find', arguments: '{}' } }],
    ]);
    expect(calls.map((call) => call.name)).toEqual(['look', 'find']);
    expect(new Set(calls.map((call) => call.id)).size).toBe(2);
  });

  it('keep the id that the client has when the provider sends one later', () => {
    const { calls } = joined([
      [{ index: 0, type: 'function', function: { name: 'look', arguments: '' } }],
      [{ index: 0, id: 'a', function: { arguments: '{"q"' } }],
      [{ index: 0, id: 'a', function: { arguments: ':1}' } }],
    ]);
    expect(calls).toEqual([{ ...first, id: 'call_gen-1_0_0' }]);
  });

  it('are given out without a name when the provider sends none', () => {
    const { calls } = joined([
      [{ index: 0, id: 'a', function: { arguments: '{"q"' } }],
      [{ index: 1, id: 'b', function: { name: 'find', arguments: '{"r":2}' } }],
      [{ index: 0, function: { arguments: ':1}' } }],
    ]);
    expect(calls).toEqual([second, { ...first, name: '' }]);
  });

  it.each([
    ['many deltas', Array.from({ length: 400 }, (_, i) => `${i % 10}`)],
    ['long arguments', Array.from({ length: 20 }, () => 'x'.repeat(8_000))],
  ])('wait for their name only for a short time, and get it later: %s', (_name, texts) => {
    const { deltas, calls } = joined([
      ...texts.map((text) => [{ index: 0, id: 'a', function: { arguments: text } }]),
      [{ index: 0, function: { name: 'look' } }],
    ]);
    expect(calls).toEqual([{ id: 'a', name: 'look', arguments: texts.join('') }]);
    expect(deltas.length).toBeGreaterThan(2);
  });

  it('of many choices together wait only for a short time', () => {
    const text = 'x'.repeat(8_000);
    const call = { index: 0, id: 'a', function: { arguments: text } };
    const bodies = Array.from({ length: 40 }, (_, index) =>
      chunkOf([{ index, delta: { tool_calls: [call] }, finish_reason: null }]),
    );
    const reader = createChatStreamReader({
      ...CONTEXT,
      budget: { ...CONTEXT.budget, completionCap: 100_000, completionTokensMax: 100_000 },
    });
    reader.head(200, { 'content-type': 'text/event-stream' });
    const sent = reader.data([Buffer.from(events(...bodies))]);
    expect(Buffer.from(sent!).toString().split(text)).toHaveLength(1 + 40 - 8);
  });

  it('do not hide output beyond the cap while they wait for their name', () => {
    const call = (text: string) => ({ tool_calls: [{ index: 0, id: 'a', function: { arguments: text } }] });
    const chunk = chunkOf([
      { index: 0, delta: call(Array.from({ length: 2_000 }, (_, i) => i).join(' ')), finish_reason: null },
    ]);
    const reader = createChatStreamReader(CONTEXT);
    reader.head(200, { 'content-type': 'text/event-stream' });
    for (let i = 0; i < 20 && reader.finished !== true; i++) reader.data([Buffer.from(events(chunk))]);
    expect(reader.finished).toBe(true);
  });

  it('keep the members of a call that is no function', () => {
    const call = { index: 0, id: 'a', type: 'custom', custom: { name: 'look', input: '' } };
    expect(joined([[call]]).deltas).toMatchObject([call]);
  });

  it('are joined where the provider puts null beside each of them', () => {
    const beside = (call: Call) => [null as unknown as Call, call];
    const { calls } = joined([
      beside({ index: 0, id: 'a', type: 'function', function: { name: 'look', arguments: '{"q"' } }),
      beside({ index: 0, function: { arguments: ':1' } }),
      beside({ index: 0, function: { arguments: '}' } }),
    ]);
    expect(calls).toEqual([first]);
  });

  it('stay apart when many deltas of one are followed by another without index', () => {
    const more = Array.from({ length: 40 }, (_, i) => [{ function: { arguments: `${i % 10}` } }]);
    const { calls } = joined([
      [{ id: 'a', function: { name: 'look', arguments: '' } }],
      ...more,
      [{ id: 'b', function: { name: 'find', arguments: '' } }],
      ...more,
    ]);
    expect(calls.map((call) => call.arguments.length)).toEqual([40, 40]);
  });
});
