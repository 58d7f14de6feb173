import { describe, expect, it } from 'vitest';
import { createEventReader, EventError } from '../../../../src/foundation/wire/reply/event-reader.ts';

const MIB = 1024 * 1024;
const TOTAL = (process.env['TOLLGATE_DEEP'] === '1' ? 4 : 2) * MIB;

/** What makes a reader quadratic: lines that never end, events that never end, tiny pieces, nothing but line ends. */
const HOSTILE: readonly (readonly [string, (size: number) => Buffer, number])[] = [
  ['a line without end in small pieces', (size) => Buffer.alloc(size, 'a'), 16],
  ['one line of data in small pieces', (size) => Buffer.from(`data: ${'x'.repeat(size)}`), 16],
  ['only line feeds', (size) => Buffer.alloc(size, '\n'), 65_536],
  ['only carriage returns', (size) => Buffer.alloc(size, '\r'), 65_536],
  ['only CRLF', (size) => Buffer.alloc(size, '\r\n'), 65_535],
  ['an event of many lines', (size) => Buffer.alloc(size, 'data: x\n'), 65_536],
  ['empty data fields', (size) => Buffer.alloc(size, 'data:\n'), 65_536],
  ['events ended by two kinds of line end', (size) => Buffer.alloc(size, 'data: x\r\n\n'), 1_000],
  ['many small events in one piece', (size) => Buffer.alloc(size, 'data: x\n\n'), TOTAL],
  // Smaller, so that a quadratic scan fails here and does not only hang.
  [
    'line feeds before one carriage return',
    (size) => Buffer.concat([Buffer.alloc(size / 5, 'data:\n\n'), Buffer.from('\r')]),
    TOTAL,
  ],
  [
    'carriage returns before one line feed',
    (size) => Buffer.concat([Buffer.alloc(size / 5, 'data:\r\r'), Buffer.from('\n')]),
    TOTAL,
  ],
  ['comments', (size) => Buffer.alloc(size, ':\n'), 65_536],
  ['comments, each by itself', (size) => Buffer.alloc(size, ':\n\n'), 65_536],
];

describe('the event reader takes time linear in its bytes', () => {
  it.each(HOSTILE)('%s', (_name, make, pieceBytes) => {
    const bytes = make(TOTAL);
    let reader = createEventReader({ bytesMax: MIB });
    const before = process.threadCpuUsage();
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      try {
        reader.push(bytes.subarray(at, at + pieceBytes));
      } catch (error) {
        // A stranger would come again at once.
        expect(error).toBeInstanceOf(EventError);
        reader = createEventReader({ bytesMax: MIB });
      }
    }
    const { user, system } = process.threadCpuUsage(before);
    // 4 MiB take less than half a second; a quadratic scan takes many.
    expect((user + system) / 1000).toBeLessThan(2_000);
  });
});
