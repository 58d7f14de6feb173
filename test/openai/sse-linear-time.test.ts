import { describe, expect, it } from 'vitest';
import { createSseScanner, SseError } from '../../src/openai/stream/sse.ts';

const MIB = 1024 * 1024;
const TOTAL = (process.env['TOLLGATE_DEEP'] === '1' ? 10 : 4) * MIB;

/** What makes a scanner quadratic: lines that never end, events that never end, tiny pieces, nothing but line ends. */
const HOSTILE: readonly (readonly [string, (size: number) => Buffer, number])[] = [
  ['a line without end in small pieces', (size) => Buffer.alloc(size, 'a'), 16],
  ['one line of data in small pieces', (size) => Buffer.from(`data: ${'x'.repeat(size)}`), 16],
  ['only line feeds', (size) => Buffer.alloc(size, '\n'), 65_536],
  ['only carriage returns', (size) => Buffer.alloc(size, '\r'), 65_536],
  ['only CRLF', (size) => Buffer.alloc(size, '\r\n'), 65_535],
  ['an event of many lines', (size) => Buffer.alloc(size, 'data: x\n'), 65_536],
  ['empty data fields', (size) => Buffer.alloc(size, 'data:\n'), 65_536],
  ['events ended by two kinds of line end', (size) => Buffer.alloc(size, 'data: x\r\n\n'), 1_000],
  ['comments', (size) => Buffer.alloc(size, ':\n'), 65_536],
  [
    'data without line ends, then one',
    (size) => Buffer.concat([Buffer.alloc(size - 2, 'data:'), Buffer.from('\n\n')]),
    65_536,
  ],
];

describe('the event scanner takes time linear in its bytes', () => {
  it.each(HOSTILE)('%s', (_name, make, pieceBytes) => {
    const bytes = make(TOTAL);
    let scanner = createSseScanner(() => true);
    const before = process.cpuUsage();
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      try {
        scanner.push(bytes.subarray(at, at + pieceBytes));
      } catch (error) {
        // A stranger would come again at once.
        expect(error).toBeInstanceOf(SseError);
        scanner = createSseScanner(() => true);
      }
    }
    const { user, system } = process.cpuUsage(before);
    // 10 MiB take well below half a second of the processor's time, which other processes cannot stretch; a
    // quadratic scan takes minutes.
    expect((user + system) / 1_000).toBeLessThan(4_000);
  });
});
