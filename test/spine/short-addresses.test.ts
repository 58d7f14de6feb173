import { OpenAI } from 'openai';
import { expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Clients that are given an address without /api: what follows /v1 is what follows /api/v1.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

test('an OpenAI client with the base address /v1 lists models and chats', async () => {
  const client = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key });
  const names = (await client.models.list()).data.map(({ id }) => id);
  const reply = await client.chat.completions.create({ model: names[0]!, messages: [{ role: 'user', content: 'Hi' }] });
  expect(reply.choices[0]!.message.content).toBeTypeOf('string');
});

test('both addresses answer the same, and what is unknown is 404 with its own name', async () => {
  const get = async (path: string) =>
    (await fetch(spine.origin + path, { headers: { authorization: `Bearer ${spine.key}` } })).json();
  expect(await get('/v1/models?type=all')).toEqual(await get('/api/v1/models?type=all'));
  expect(await get('/v1/nowhere')).toMatchObject({
    // Here the code is a word, as in OpenAI's API.
    error: { code: 'not_found', message: expect.stringContaining('/v1/nowhere') },
  });
});
