import { expect, test } from 'vitest';
import { PiecedBody } from '#http';

test('a large body lets other work of the event loop run while it is made', async () => {
  const body = new PiecedBody().add(Buffer.alloc(4 * 1024 * 1024, 'x')).add(Buffer.from('end'));
  let turns = 0;
  const counting = () => {
    turns += 1;
    next = setImmediate(counting);
  };
  let next = setImmediate(counting);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  clearImmediate(next);
  expect(Buffer.concat(pieces).byteLength).toBe(body.byteLength);
  expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(64 * 1024);
  expect(turns).toBeGreaterThanOrEqual(15);
});

test('a body is made anew for each provider that it is sent to', async () => {
  const body = new PiecedBody().add(Buffer.from('abc')).add(Buffer.from('def'));
  for (let time = 0; time < 2; time++) {
    let text = '';
    for await (const piece of body) text += Buffer.from(piece).toString();
    expect(text).toBe('abcdef');
  }
});
