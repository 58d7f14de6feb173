import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { modelBlock, MODEL, startSpine, type Spine } from '../support/spine.ts';

// The list of models as @anthropic-ai/sdk reads it, by the header that it always sends.

let spine: Spine;
let client: Anthropic;
beforeAll(async () => {
  spine = await startSpine({
    toml: ['a', 'b', 'c']
      .map((name) => modelBlock({ name: `test/${name}`, provider: `Of ${name}`, url: '{provider}' }))
      .join(''),
  });
  client = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
});
afterAll(() => spine.stop());

// Claude Code keeps names alone that begin so.
const NAMES = ['test/a', 'test/b', 'test/c', MODEL].map((name) => `anthropic/${name}`);

test('models.list() gives all of them', async () => {
  const page = await client.models.list();
  expect(page.data.map(({ id }) => id)).toEqual(NAMES);
  expect(page).toMatchObject({ has_more: false, first_id: NAMES[0], last_id: NAMES[3] });
  expect(page.data[3]).toEqual({
    type: 'model',
    id: NAMES[3],
    display_name: 'Test: Model',
    created_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  });
});

test('a page at a time, to the end and back', async () => {
  const ids: string[] = [];
  for await (const model of client.models.list({ limit: 3 })) ids.push(model.id);
  expect(ids).toEqual(NAMES);
  const before = await client.models.list({ before_id: 'test/c', limit: 1 });
  expect([before.data.map(({ id }) => id), before.has_more]).toEqual([['anthropic/test/b'], true]);
  expect((await client.models.list({ after_id: 'anthropic/test/c' })).data.map(({ id }) => id)).toEqual([NAMES[3]]);
  await expect(client.models.list({ after_id: 'test/none' })).rejects.toMatchObject({ status: 400 });
});

test.each(['test/b', 'anthropic/test/b'])('models.retrieve(%j) gives one', async (id) => {
  expect(await client.models.retrieve(id)).toMatchObject({
    type: 'model',
    id: 'anthropic/test/b',
    display_name: 'Of b: Model',
  });
});

test('a name of the list answers messages', async () => {
  const asked = { max_tokens: 20, messages: [{ role: 'user' as const, content: 'Hi' }] };
  expect((await client.messages.create({ model: NAMES[3]!, ...asked })).model).toBe(NAMES[3]);
});

test('the same address without the header is the other list, and caches know it', async () => {
  const response = await spine.get('/models');
  expect(response.headers.get('vary')).toBe('anthropic-version');
  expect(await response.json()).toMatchObject({ object: 'list', total_count: 4 });
});
