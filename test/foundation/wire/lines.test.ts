import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLines } from '../../../src/foundation/wire/lines.ts';

function cut(chunks: readonly Buffer[], bytesMax = 1_000) {
  const lines: string[] = [];
  const tooLong: string[] = [];
  const endings: string[] = [];
  const splitter = createLines({
    bytesMax,
    line: (text) => lines.push(text),
    tooLong: (beginning) => tooLong.push(beginning),
    tooLongEnd: (ending) => endings.push(ending),
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return { lines, tooLong, endings };
}

describe('bytes as lines', () => {
  it('are the same however they are cut, inside characters too', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 20 })),
        fc.array(fc.nat(200), { maxLength: 20 }),
        (texts, cuts) => {
          const wanted = texts.map((text) => text.replaceAll(/[\r\n]/g, '')).filter((text) => text !== '');
          const bytes = Buffer.from(wanted.join('\n'));
          const at = [0, ...cuts.map((place) => Math.min(place, bytes.length)).sort((a, b) => a - b), bytes.length];
          const chunks = at.slice(1).map((to, index) => bytes.subarray(at[index], to));
          expect(cut(chunks).lines).toEqual(wanted);
        },
      ),
    );
  });

  it('end with LF or CRLF, and empty ones do not count', () => {
    expect(cut([Buffer.from('a\r\n\n\r\nb\nc')]).lines).toEqual(['a', 'b', 'c']);
  });

  it('that are too long are told by their beginning and passed over', () => {
    const long = 'x'.repeat(50);
    expect(cut([Buffer.from(`a\n${long}`), Buffer.from(`${long}\nb\n${long}`)], 10)).toEqual({
      lines: ['a', 'b'],
      tooLong: ['x'.repeat(10), 'x'.repeat(10)],
      endings: [long + long, long],
    });
    expect(cut([Buffer.from(`${'y'.repeat(10)}\n`)], 10)).toEqual({
      lines: ['y'.repeat(10)],
      tooLong: [],
      endings: [],
    });
  });

  it('that are too long are told by their last 1,024 bytes too, however they are cut', () => {
    const text = Array.from({ length: 400 }, (_, index) => `${index},`).join('');
    const bytes = Buffer.from(`${text}\nb`);
    for (const size of [1, 7, 1_000, 1_024, 1_025, 5_000]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      );
      expect(cut(chunks, 100)).toEqual({
        lines: ['b'],
        tooLong: [text.slice(0, 100)],
        endings: [text.slice(-1_024)],
      });
    }
  });

  it('take linear time in single bytes, and memory for one line', () => {
    let count = 0;
    const splitter = createLines({ bytesMax: 1 << 20, line: (text) => (count += text.length), tooLong: () => {} });
    const byte = Buffer.from('x');
    for (let index = 0; index < 200_000; index += 1) splitter.push(byte);
    splitter.end();
    expect(count).toBe(200_000);
  });

  it('keep no chunk that they came in: a line in single bytes would take a hundred times its size', () => {
    const lines: string[] = [];
    const splitter = createLines({ bytesMax: 1_000, line: (text) => lines.push(text), tooLong: () => {} });
    const chunk = Buffer.alloc(1);
    for (const byte of 'abc\n') {
      chunk.write(byte);
      splitter.push(chunk);
    }
    expect(lines).toEqual(['abc']);
  });
});
