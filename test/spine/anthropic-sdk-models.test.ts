import Anthropic from '@anthropic-ai/sdk';
import { beforeAll, expect, test } from 'vitest';
import { modelBlock, MODEL } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The list of models as @anthropic-ai/sdk reads it, by the header that it always sends.

let client: Anthropic;
const spine = spineOfFile(() => ({
  toml: ['a', 'b', 'c']
    .map((name) => modelBlock({ name: `test/${name}`, provider: `Of ${name}`, url: '{provider}' }))
    .join(''),
}));
beforeAll(() => {
  client = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: spine.key, maxRetries: 0 });
});

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
    lifecycle: 'active',
    max_input_tokens: 100_000,
    max_tokens: 4096,
    capabilities: null,
    deprecated_at: null,
    line: null,
    retires_at: null,
  });
});

test('a page at a time, to the end and back', async () => {
  const ids: string[] = [];
  for await (const model of client.models.list({ limit: 3 })) ids.push(model.id);
  expect(ids).toEqual(NAMES);
  const before = await client.models.list({ before_id: 'test/c', limit: 1 });
  expect([before.data.map(({ id }) => id), before.has_more]).toEqual([['anthropic/test/b'], true]);
  expect((await client.models.list({ after_id: 'anthropic/test/c' })).data.map(({ id }) => id)).toEqual([NAMES[3]]);
});

test.each([
  ['a page after an unknown model', () => client.models.list({ after_id: 'test/none' }), 400, 'invalid_request_error'],
  ['a limit that is none', () => client.models.list({ limit: 0 }), 400, 'invalid_request_error'],
  ['an unknown model', () => client.models.retrieve('test/none'), 404, 'not_found_error'],
  ['files, which the gateway does not have', () => client.beta.files.list(), 404, 'not_found_error'],
])('%s is an error in the form of this API', async (_what, ask, status, type) => {
  const error: unknown = await Promise.resolve(ask()).catch((failed: unknown) => failed);
  expect(error).toMatchObject({
    status,
    type,
    requestID: expect.any(String) as string,
    error: { type: 'error', error: { type, message: expect.any(String) as string } },
  });
});

test('without the header these errors are those of the chat API', async () => {
  expect(await (await spine.get('/models/test/none')).json()).toMatchObject({ error: { code: 404 } });
  expect(await (await spine.get('/fine_tuning/jobs')).json()).toMatchObject({ error: { code: 404 } });
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
  expect(response.headers.get('vary')).toBe('anthropic-version, x-goog-api-key, x-api-key, authorization');
  expect(await response.json()).toMatchObject({ object: 'list', total_count: 4 });
});
