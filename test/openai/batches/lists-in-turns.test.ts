import { expect, test } from 'vitest';
import { listAnswer, pageOf } from '../../../src/openai/batches/list-page.ts';

test('each page of a list is made in a turn of the event loop of its own', async () => {
  let made = 0;
  const entries = Array.from({ length: 100 }, (_, at) => ({ id: `file-${at}` }));
  const pages = Array.from({ length: 30 }, () => listAnswer({ entries, hasMore: false }, () => ({ at: made++ })));
  let most = 0;
  while (made < 30 * entries.length) {
    const before = made;
    await new Promise((done) => void setImmediate(done));
    most = Math.max(most, made - before);
  }
  expect(most).toBe(entries.length);
  expect(await Promise.all(pages)).toHaveLength(30);
});

test('a page has at most 1,000 entries, whatever is asked for', () => {
  expect([pageOf({ limit: 10_000 }).limit, pageOf({ limit: 7 }).limit, pageOf({}).limit]).toEqual([1_000, 7, 20]);
});
