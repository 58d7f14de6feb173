import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { learnForm } from '../../src/openai/stream/chunk-forms.ts';
import { createToolCallIds } from '../../src/openai/chat/reply/chat-decoder.ts';
import { createChatStreamDecoder } from '../../src/openai/stream/chat-stream-reader.ts';
import { ChunkBytes, ChunkEvents } from '../../src/openai/stream/chunk-output.ts';
import { findRun } from '../../src/openai/stream/event-forms.ts';
import { chunkOf, CONTEXT, delta, events, stream, textOf, USAGE } from './support/replies.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 10 }),
  fc.constantFrom('', '"', '\\', '\n', '\u0001', 'é', '\ud800', '</script>', 'content":"', '"}'),
);
const quirks = fc.constantFrom<Record<string, unknown>>(
  {},
  { usage: null },
  { system_fingerprint: 'fp_"content":"' },
  { created: 5 },
  { created: 1.5, error: {} },
  { model: undefined },
  { usage: USAGE },
  { usage: { ...USAGE, completion_tokens: 6, total_tokens: 18 } },
  { x: [1, { y: 'z' }] },
);
const choice = fc.oneof(
  { weight: 8, arbitrary: text.map((content) => delta(content)) },
  {
    weight: 2,
    arbitrary: text.map((content) => ({
      index: 0,
      logprobs: null,
      delta: { role: 'assistant', content },
      finish_reason: '',
    })),
  },
  {
    weight: 2,
    arbitrary: text.map((reasoning_content) => ({
      index: 0,
      delta: { content: null, reasoning_content },
      finish_reason: null,
    })),
  },
  { weight: 2, arbitrary: fc.tuple(text, fc.nat(2)).map(([content, index]) => delta(content, null, index)) },
  {
    weight: 2,
    arbitrary: fc.tuple(text, fc.nat(2), fc.constantFrom(undefined, 'call_a', 'call_b')).map(([given, index, id]) => ({
      index: 0,
      delta: {
        tool_calls: [
          {
            index,
            ...(id ? { id, type: 'function' } : {}),
            function: { ...(id ? { name: 'f' } : {}), arguments: given },
          },
        ],
      },
      finish_reason: null,
    })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(text, fc.boolean()).map(([said, thinks]) => {
      const part = { type: 'text', text: said };
      const content = [thinks ? { type: 'thinking', thinking: [part] } : part];
      return { index: 0, delta: { content }, finish_reason: null };
    }),
  },
  {
    weight: 1,
    arbitrary: text.map((reasoning) => ({
      index: 0,
      delta: { reasoning, reasoning_details: [{ type: 'reasoning.text', text: reasoning, index: 0 }] },
      finish_reason: null,
    })),
  },
  { weight: 1, arbitrary: fc.constantFrom('stop', 'length').map((reason) => delta('end', reason)) },
);

/** The ways in which servers write JSON. */
const writers: readonly ((value: unknown) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 1).replaceAll('\n', ' '),
  (value) =>
    JSON.stringify(value).replace(
      /[\u0080-\uffff]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  (value) => JSON.stringify(value).replaceAll('/', '\\/'),
];

/** A stream of these chunks, and of their end. */
const bodyOf = (items: readonly (readonly [unknown, Record<string, unknown>])[], writer: (value: unknown) => string) =>
  events(...items.map(([item, rest]) => writer(chunkOf([item], rest))), writer(chunkOf([delta('', 'stop')])), '[DONE]');

/** The events of a stream for a client of another wire. Texts that follow each other are one. */
function decoded(body: string, parseAll: boolean): readonly unknown[] {
  const ids = createToolCallIds((...given) => JSON.stringify(given));
  const reader = createChatStreamDecoder(CONTEXT, new ChunkEvents(ids), { parseAll });
  reader.head(200, { 'content-type': 'text/event-stream' });
  const batches = [reader.data([Buffer.from(body)]), reader.end().result.before];
  const all: Record<string, unknown>[] = [];
  for (const event of batches.flatMap((batch) => (batch !== null && 'events' in batch ? batch.events : []))) {
    const { type, json, index } = event as { type: string; json?: readonly string[]; index?: number };
    const last = all.at(-1);
    if (json !== undefined && last?.['type'] === type && last['index'] === index)
      last['json'] = `${String(last['json'])}${json.join('')}`;
    else all.push({ ...event, ...(json === undefined ? {} : { json: json.join('') }) });
  }
  return all;
}

describe('the fast path of the stream reader', () => {
  it('gives byte for byte what parsing every chunk gives', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(choice, quirks), { maxLength: 40 }),
        fc.constantFrom(...writers),
        (items, writer) => {
          const body = bodyOf(items, writer);
          expect(stream(body)).toEqual(stream(body, CONTEXT, { parseAll: true }));
        },
      ),
      { numRuns: deep ? 100_000 : 500 },
    );
  });

  it('gives the events that parsing every chunk gives, with the same ids of tool calls', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(choice, quirks), { maxLength: 40 }),
        fc.constantFrom(...writers),
        (items, writer) => {
          const body = bodyOf(items, writer);
          expect(decoded(body, false)).toEqual(decoded(body, true));
        },
      ),
      { numRuns: deep ? 100_000 : 500 },
    );
  });

  it('parses next to nothing of a usual stream for a client of another wire', () => {
    const words = Array.from({ length: 200 }, (_, i) => `${i} `);
    const thoughts = words.map((reasoning_content) => ({ index: 0, delta: { reasoning_content } }));
    for (const items of [words.map((word) => delta(word)), thoughts]) {
      const parse = vi.spyOn(JSON, 'parse');
      const said = decoded(
        events(...items.map((item) => chunkOf([item])), chunkOf([delta('', 'stop')]), '[DONE]'),
        false,
      );
      const parsed = parse.mock.calls.length;
      parse.mockRestore();
      expect(said).toMatchObject([{ json: words.join('') }]);
      expect(parsed).toBeLessThan(20);
    }
  });

  it('parses next to nothing of a usual stream, of text, reasoning or tool arguments', () => {
    const call = (given: string) => ({
      index: 0,
      delta: { tool_calls: [{ index: 0, function: { arguments: given } }] },
      finish_reason: null,
    });
    const open = {
      index: 0,
      delta: { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
      finish_reason: null,
    };
    const bodies = [
      events(...Array.from({ length: 200 }, (_, i) => chunkOf([delta(`${i} `)]))),
      events(...Array.from({ length: 200 }, (_, i) => chunkOf([{ index: 0, delta: { reasoning_content: `${i} ` } }]))),
      events(chunkOf([open]), ...Array.from({ length: 200 }, (_, i) => chunkOf([call(`${i}`)]))),
    ];
    for (const body of bodies) {
      const parse = vi.spyOn(JSON, 'parse');
      const { error } = stream(body + events(chunkOf([delta('', 'stop')]), '[DONE]'));
      expect(error).toBeNull();
      expect(parse.mock.calls.length).toBeLessThan(10);
      parse.mockRestore();
    }
  });

  it('ends a run where the form, the text or the bytes end', () => {
    const words = Array.from({ length: 40 }, (_, i) => chunkOf([delta(` w${i}`)]));
    const odd = [
      chunkOf([delta(' x', 'stop', 1)]),
      chunkOf([delta(' y', null, 1)]),
      chunkOf([delta(' z')], { usage: USAGE }),
      chunkOf([delta('\u0001')]),
      chunkOf([delta('ü'.repeat(40))]),
      chunkOf([delta('-'.repeat(300))]),
      chunkOf([delta('long '.repeat(8_000))]),
    ];
    for (const one of odd) {
      const body = events(...words, one, ...words, one, one, ...words, chunkOf([delta('', 'stop')]), '[DONE]');
      const wide = { ...CONTEXT, budget: { ...CONTEXT.budget, completionCap: 1e6, completionTokensMax: 1e6 } };
      for (const context of [CONTEXT, wide])
        expect(stream(body, context)).toEqual(stream(body, context, { parseAll: true }));
    }
  });

  it('finds the text among fields of the same name', () => {
    // The one that varies here is not the text.
    const named = (mark: string) => ({
      content: mark,
      note: '"content":"x"',
      ...chunkOf([{ content: 'same', ...delta('a') }]),
    });
    const body = events(named('x'), named('y'), named('z'), chunkOf([delta('', 'stop')]), '[DONE]');
    const outcome = stream(body);
    expect(outcome).toEqual(stream(body, CONTEXT, { parseAll: true }));
    expect(textOf(outcome)).toBe('aaa');
  });

  it('takes the claim of every chunk', () => {
    const claim = (completion_tokens: number) => ({ usage: { prompt_tokens: 1, completion_tokens } });
    const body = events(
      ...[7, 8, 9].map((count) => chunkOf([delta('a')], claim(count))),
      chunkOf([delta('', 'stop')]),
      '[DONE]',
    );
    expect(stream(body).end!.usage).toEqual({ prompt: 1n, completion: 9n });
  });

  it('tells the form of a chunk from all others', () => {
    const line = JSON.stringify(chunkOf([delta('Hello')]));
    const place = (chunk: Record<string, unknown>, value: string) =>
      void ((chunk['choices'] as { delta: { content: string } }[])[0]!.delta.content = value);
    const output = new ChunkBytes();
    const form = learnForm(line, 'content', place)!;
    const written = output.learn(chunkOf([delta('Hello')], { id: 'ours' }), place)!;
    const apply = (event: string) => {
      const bytes = Buffer.from(event);
      const run = findRun(form, bytes, 0, bytes.length, false, 1, 100);
      if (run !== null) output.run(written, run, bytes);
      const count = run?.bytes ?? -1;
      return { count, out: output.take()?.toString() ?? null };
    };
    expect(apply(JSON.stringify(chunkOf([delta(' wörld\n')])))).toEqual({
      count: 8,
      out: events(chunkOf([delta(' wörld\n')], { id: 'ours' })),
    });
    expect(apply(JSON.stringify(chunkOf([delta('', 'stop')]))).count).toBe(-1);
    expect(apply(line.replace('Hello', 'a"b')).count).toBe(-1);
    expect(apply(line.replace('Hello', 'a\\')).count).toBe(-1);
    expect(apply(line.replace('Hello', '\\u0041')).count).toBe(-1);
  });

  it('never lets a provider write outside its text', () => {
    const base = JSON.stringify(chunkOf([delta('MARK')]));
    const injected = base.replace(
      'MARK',
      '"},"finish_reason":null}],"error":{"message":"x"},"choices":[{"index":0,"delta":{"content":"',
    );
    const outcome = stream(`${events(base, base, base)}data: ${injected}\n\n`);
    expect(outcome.error?.message).toContain('reported an error');
  });

  it('leaves bytes that are no UTF-8 to the parser, which replaces them', () => {
    const [head, tail] = events(chunkOf([delta('MARK')])).split('MARK');
    const bytes = Buffer.concat([Buffer.from(head!), Buffer.from([0x61, 0xff, 0xfe]), Buffer.from(tail!)]);
    const body = Buffer.concat([
      Buffer.from(events(chunkOf([delta('a')]))),
      bytes,
      Buffer.from(events(chunkOf([delta('', 'stop')]), '[DONE]')),
    ]);
    expect(stream(body)).toEqual(stream(body, CONTEXT, { parseAll: true }));
    expect(stream(body).sent).toContain('a\uFFFD\uFFFD');
  });
});

it('holds a chunk that only opens the reply, and counts its bytes with those of the first word', () => {
  const reader = createChatStreamDecoder(CONTEXT, new ChunkEvents(createToolCallIds()));
  reader.head(200, { 'content-type': 'text/event-stream' });
  expect(reader.data([Buffer.from(': nothing yet\n\n')])).toBeNull();
  const role = Buffer.from(
    events(chunkOf([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])),
  );
  expect(reader.data([role])).toBeNull();
  const word = Buffer.from(events(chunkOf([delta('a')])));
  const byteLength = 15 + role.byteLength + word.byteLength;
  expect(reader.data([word])).toEqual({ events: [{ type: 'text-delta', json: ['a'] }], byteLength });
  expect(reader.data([Buffer.from(': nothing more\n\n')])).toBeNull();
});
