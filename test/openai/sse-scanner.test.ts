import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSseScanner, SseError } from '../../src/openai/stream/sse.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';

function scan(chunks: readonly Buffer[], bytesMax?: number): string[] {
  const found: string[] = [];
  const scanner = createSseScanner((bytes, start, end, _refused, isError) => {
    found.push((isError ? 'error: ' : '') + bytes.toString('utf8', start, end));
    return true;
  }, bytesMax);
  for (const chunk of chunks) scanner.push(chunk);
  scanner.end();
  return found;
}

const whole = (text: string) => scan([Buffer.from(text)]);

describe('the event scanner', () => {
  it.each([
    ['LF', 'data: a\n\ndata: b\n\n', ['a', 'b']],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['CR', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['a mixture of line ends', 'data: a\n\r\ndata: b\r\n\ndata: c\r\r\n', ['a', 'b', 'c']],
    ['a byte order mark', '\uFEFFdata: a\n\n', ['a']],
    ['comments', ': hello\n\n: and again\ndata: a\n: in between\n\n', ['a']],
    ['data without a space', 'data:a\n\n', ['a']],
    ['data with two spaces, of which one belongs to it', 'data:  a\n\n', [' a']],
    ['data of several lines', 'data: a\ndata: b\ndata:\ndata: c\n\n', ['a\nb\n\nc']],
    ['data of several lines that end in CRLF', 'data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n', ['a\nb', 'c']],
    ['other fields', 'event: message\nid: 7\nretry: 100\ndata: a\n\n', ['a']],
    ['a field whose name begins with data', 'database: x\n\ndatax\n\ndata: a\n\n', ['a']],
    ['data without a colon', 'data\n\ndata: a\n\n', ['a']],
    ['empty data', 'data:\n\ndata: \n\ndata: a\n\n', ['a']],
    ['blank lines between events', '\n\n\ndata: a\n\n\n\ndata: b\n\n', ['a', 'b']],
    ['a last event without its blank line', 'data: a\n\ndata: b', ['a', 'b']],
    ['a last line without its end', 'data: a\ndata: b', ['a\nb']],
    ['an error by its name', 'event: error\ndata: a\n\ndata: b\n\n', ['error: a', 'b']],
    ['an error whose lines end in CRLF', 'event:error\r\ndata: a\r\n\r\ndata: b\r\n\r\n', ['error: a', 'b']],
    ['an error whose name comes last', 'data: a\nevent: error\n\ndata: b', ['error: a', 'b']],
    ['an error with more fields', 'id: 1\nevent: error\nid: 2\ndata: a\n\n', ['error: a']],
    ['the last of two names', 'event: error\nevent: x\ndata: a\n\nevent: x\nevent: error\ndata: b', ['a', 'error: b']],
    ['a name without data', 'event: error\n\ndata: a\n\n', ['a']],
    [
      'names like that of an error',
      'event: errors\ndata: a\n\nevent: Error\ndata: b\n\nevents: error\ndata: c',
      ['a', 'b', 'c'],
    ],
    ['nothing', '', []],
  ])('reads %s', (_name, text, wanted) => {
    expect(whole(text)).toEqual(wanted);
  });

  it('finds the same events however the bytes are split', () => {
    const piece = fc.constantFrom(
      'data: a',
      'data:',
      'data',
      ': c',
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
      'event: error',
      'event: error\n',
      'data: {"a":1}\n\n',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(), { maxLength: 30 }), (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(''));
        const at = [...new Set(cuts.map((cut) => (bytes.length ? cut % bytes.length : 0)))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((start, i) => bytes.subarray(start, at[i] ?? bytes.length));
        expect(scan(chunks)).toEqual(scan([bytes]));
        expect(scan([...bytes].map((byte) => Buffer.from([byte])))).toEqual(scan([bytes]));
      }),
      { numRuns: deep ? 200_000 : 400 },
    );
  });

  it('refuses a line without end, however it arrives', () => {
    const long = Buffer.from(`data: ${'a'.repeat(5_000)}`);
    expect(() => scan([long], 1_000)).toThrow(SseError);
    expect(() => scan([Buffer.concat([long, Buffer.from('\n\n')])], 1_000)).toThrow(SseError);
    expect(() =>
      scan(
        [...long].map((byte) => Buffer.from([byte])),
        1_000,
      ),
    ).toThrow(SseError);
    expect(() => scan([Buffer.from('data: abcdefgh\n'.repeat(1_000))], 1_000)).toThrow(SseError);
    expect(scan([Buffer.from(`data: ${'a'.repeat(900)}\n\n`)], 1_000)).toHaveLength(1);
  });

  it('stops when it is told to', () => {
    const found: string[] = [];
    const scanner = createSseScanner((bytes, start, end) => {
      found.push(bytes.toString('utf8', start, end));
      return false;
    });
    scanner.push(Buffer.from('data: a\n\ndata: b\n\n'));
    scanner.push(Buffer.from('data: c\n\n'));
    scanner.end();
    expect(found).toEqual(['a']);
  });
});
