import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createEventReader,
  EventError,
  eventText,
  type SseEvent,
} from '../../../../src/foundation/wire/reply/event-reader.ts';
import { anyCharacter } from '../../../support/any-character.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

/** The events, and whether the stream broke after them. */
function read(
  chunks: readonly Uint8Array[],
  bytesMax = 1_000_000,
): { readonly events: SseEvent[]; readonly broken: boolean } {
  const events: SseEvent[] = [];
  const reader = createEventReader({ bytesMax });
  try {
    for (const chunk of chunks) events.push(...reader.push(chunk));
    events.push(...reader.end());
    return { events, broken: false };
  } catch (error) {
    expect(error).toBeInstanceOf(EventError);
    return { events, broken: true };
  }
}

const whole = (text: string) => read([Buffer.from(text)]).events;
const plain = (data: string, raw: string) => ({ event: 'message', data, id: null, retry: null, raw });

describe('reading server-sent events', () => {
  it.each<readonly [string, string, readonly object[]]>([
    ['LF', 'data: a\n\ndata: b\n\n', [plain('a', 'data: a\n\n'), plain('b', 'data: b\n\n')]],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', [plain('a', 'data: a\r\n\r\n'), plain('b', 'data: b\r\n\r\n')]],
    ['CR', 'data: a\r\rdata: b\r\r', [plain('a', 'data: a\r\r'), plain('b', 'data: b\r\r')]],
    ['a byte order mark', '\uFEFFdata: a\n\n', [plain('a', 'data: a\n\n')]],
    [
      'a byte order mark that is none',
      'data: a\n\n\uFEFFdata: b\n\ndata: c\n\n',
      [plain('a', 'data: a\n\n'), plain('c', 'data: c\n\n')],
    ],
    ['a byte order mark after a line end', '\n\uFEFFdata: a\n\ndata: b\n\n', [plain('b', 'data: b\n\n')]],
    ['all fields', 'event: e\nid: 7\nretry: 100\ndata: a\n\n', [{ event: 'e', id: '7', retry: 100, data: 'a' }]],
    ['fields without space', 'event:e\nid:7\nretry:100\ndata:a\n\n', [{ event: 'e', id: '7', retry: 100, data: 'a' }]],
    ['data with two spaces, of which one belongs to it', 'data:  a\n\n', [{ data: ' a' }]],
    ['data of several lines', 'data: a\ndata:\ndata\ndata: b\n\n', [{ data: 'a\n\n\nb' }]],
    ['data of several lines that end in CRLF', 'data: a\r\ndata: b\r\n\r\n', [{ data: 'a\nb' }]],
    ['an event that tells its id only', 'id: 1\ndata:\n\n', [{ id: '1', data: '', event: 'message' }]],
    ['an event that tells when to come again', 'retry: 500\n\n', [{ retry: 500, data: '', id: null }]],
    ['an empty id', 'id\ndata: a\n\n', [{ id: '' }]],
    ['an id with a NUL', 'id: a\0b\ndata: a\n\n', [{ id: null, data: 'a' }]],
    ['a retry that is no number', 'retry: 1s\ndata: a\n\n', [{ retry: null }]],
    ['an empty event', 'event\ndata: a\n\n', [{ event: 'message' }]],
    ['comments in an event', ': one\ndata: a\n:two\n\n', [plain('a', ': one\ndata: a\n:two\n\n')]],
    ['comments between events', ': ping\n\n:\n\ndata: a\n\n: ping\n\n', [plain('a', 'data: a\n\n')]],
    ['unknown fields', 'data: a\nx: 1\n\nx: 1\n\n', [plain('a', 'data: a\nx: 1\n\n')]],
    ['fields that only begin as one', 'database: x\n\nData: x\n\n', []],
    [
      'blank lines',
      '\n\n\r\n\r\rdata: a\n\n\n\n\ndata: b\n\n\n',
      [plain('a', 'data: a\n\n'), plain('b', 'data: b\n\n')],
    ],
    [
      'a last event without its blank line',
      'data: a\n\ndata: b\n',
      [plain('a', 'data: a\n\n'), plain('b', 'data: b\n\n')],
    ],
    ['a last line without its end', 'data: a', [plain('a', 'data: a\n\n')]],
    ['letters beyond ASCII', 'data: ü🌍\n\n', [plain('ü🌍', 'data: ü🌍\n\n')]],
    ['nothing', '', []],
  ])('reads %s', (_name, text, wanted) => {
    const events = whole(text);
    expect(events).toHaveLength(wanted.length);
    expect(events).toMatchObject(wanted);
  });

  const piece = fc.constantFrom(
    'data: a',
    'data:',
    'data',
    ': c',
    'id: 1',
    'retry: 5',
    'data: ü🌍',
    '\n',
    '\n\n',
    '\r',
    '\r\n',
    '\r\n\r\n',
    'x',
    ' ',
    '\uFEFF',
    'event: e',
    'data: {"a":1}\n\n',
  );

  it('finds the same events however the bytes are split', () => {
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.constantFrom(20, 60, 1_000),
        (pieces, cuts, bytesMax) => {
          const bytes = Buffer.from(pieces.join(''));
          const at = [...new Set(cuts.map((cut) => (bytes.length ? cut % bytes.length : 0)))].sort((a, b) => a - b);
          const chunks = [0, ...at].map((start, i) => new Uint8Array(bytes.subarray(start, at[i] ?? bytes.length)));
          const wanted = read([bytes], bytesMax);
          expect(read(chunks, bytesMax)).toEqual(wanted);
          const single = [...bytes].map((byte) => Buffer.from([byte]));
          expect(read(single, bytesMax)).toEqual(wanted);
        },
      ),
      { numRuns: deep ? 1_000_000 : 600 },
    );
  });

  it('gives events whose own bytes read as the same events again', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const events = whole(pieces.join(''));
        expect(whole(`\n${events.map(({ raw }) => raw).join('')}`)).toEqual(events);
      }),
      { numRuns: deep ? 200_000 : 600 },
    );
  });

  it.each([
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ])('keeps every byte of a stream of %s', (_name, end) => {
    const line = fc.constantFrom('data: a', 'data', 'id: 1', 'event: e', 'retry: 5', ': c', 'x: ü');
    fc.assert(
      fc.property(
        fc.array(fc.array(line, { minLength: 1, maxLength: 4 }), { maxLength: 8 }),
        fc.nat(),
        (blocks, cut) => {
          const bytes = Buffer.from(blocks.map((lines) => ['data: first', ...lines, '', ''].join(end)).join(''));
          const at = bytes.length ? cut % bytes.length : 0;
          const { events } = read([bytes.subarray(0, at), bytes.subarray(at)]);
          expect(events.map(({ raw }) => raw).join('')).toBe(bytes.toString());
        },
      ),
      { numRuns: deep ? 100_000 : 400 },
    );
  });

  it('gives an event with its last byte, before anything follows', () => {
    for (const text of ['data: a\n\n', 'data: a\r\r', 'data: a\r\n\r']) {
      const reader = createEventReader({ bytesMax: 100 });
      expect(reader.push(Buffer.from(text.slice(0, -1)))).toEqual([]);
      expect(reader.push(Buffer.from(text.slice(-1)))).toMatchObject([{ data: 'a' }]);
    }
  });

  it('refuses an event above the cap, and gives those before it', () => {
    const reader = createEventReader({ bytesMax: 100 });
    expect(reader.push(Buffer.from(`data: a\n\ndata: ${'x'.repeat(100)}`))).toMatchObject([{ data: 'a' }]);
    expect(() => reader.push(Buffer.from('\n\n'))).toThrow(EventError);
    expect(() => reader.end()).toThrow(EventError);
    expect(read([Buffer.from('data: a\n'.repeat(20))], 100)).toEqual({ events: [], broken: true });
    expect(read([Buffer.from(`data: ${'x'.repeat(92)}\n\n`)], 100)).toMatchObject({ events: [{}], broken: false });
    expect(read([Buffer.from(`data: ${'x'.repeat(93)}\n\n`)], 100)).toMatchObject({ events: [], broken: true });
    expect(read([Buffer.from('data: a\n\n'.repeat(100))], 100).events).toHaveLength(100);
  });

  it('writes events that it reads', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter }),
        fc.option(fc.constantFrom('7', 'a b')),
        fc.constantFrom('message', 'ping'),
        (data, id, event) => {
          fc.pre(data.isWellFormed());
          const text = eventText(data, id, event);
          expect(whole(text)).toEqual([{ event, id, data: data.replaceAll(/\r\n?/g, '\n'), retry: null, raw: text }]);
        },
      ),
      { numRuns: deep ? 100_000 : 400 },
    );
    expect(eventText('{"a":1}')).toBe('event: message\ndata: {"a":1}\n\n');
    expect(eventText('{"a":1}', '7')).toBe('event: message\nid: 7\ndata: {"a":1}\n\n');
  });
});
