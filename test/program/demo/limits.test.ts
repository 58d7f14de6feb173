import { BadRequestError, NotFoundError } from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countTokens, splitTokens } from '../../../src/program/demo/request.ts';
import { startDemo } from './demo-client.ts';

let started: Awaited<ReturnType<typeof startDemo>>;
beforeAll(async () => {
  started = await startDemo();
});
afterAll(() => started.demo.close());

it('tokens make up the text and are counted the same', () => {
  for (const text of [
    '',
    'Hello, world!',
    '  two  spaces\n\n\t',
    'Donaudampfschiff für 通行止め 🚧🚧',
    'a'.repeat(65_536 * 2),
    '\ud800 lone',
  ]) {
    expect(splitTokens(text).join('')).toBe(text);
    expect(Math.abs(countTokens(text) - splitTokens(text).length)).toBeLessThanOrEqual(2);
  }
  expect(splitTokens('Hello, world!')).toEqual(['Hello', ',', ' world', '!']);
});

it('max_tokens cuts each choice and says so', async () => {
  for (const limit of [{ max_tokens: 3 }, { max_completion_tokens: 3 }]) {
    const reply = await started.ask('count to 5', { ...limit, n: 2 });
    expect(reply.choices.map((choice) => [choice.message.content, choice.finish_reason])).toEqual([
      ['1, 2', 'length'],
      ['1, 2', 'length'],
    ]);
    expect(reply.usage?.completion_tokens).toBe(6);
  }
});

it('an answer that just fits is not cut', async () => {
  const { usage } = await started.ask('count to 5');
  const length = usage?.completion_tokens ?? 0;
  expect((await started.ask('count to 5', { max_completion_tokens: length })).choices[0]).toMatchObject({
    message: { content: '1, 2, 3, 4, 5.' },
    finish_reason: 'stop',
  });
  expect((await started.ask('count to 5', { max_completion_tokens: length - 1 })).choices[0]).toMatchObject({
    message: { content: '1, 2, 3, 4, 5' },
    finish_reason: 'length',
  });
});

it('stops before the first stop sequence', async () => {
  const reply = await started.ask('count to 9', { stop: ['7', ' 5'] });
  expect(reply.choices[0]).toMatchObject({ message: { content: '1, 2, 3, 4,' }, finish_reason: 'stop' });
});

it('counts the prompt by its rule', async () => {
  const reply = await started.ask('Hello, world!');
  // 3 for the prompt, 4 for the message, 4 for its text.
  expect(reply.usage?.prompt_tokens).toBe(11);
  expect(reply.usage?.total_tokens).toBe(11 + (reply.usage?.completion_tokens ?? 0));
});

it('refuses what it cannot answer', async () => {
  await expect(started.ask('hi', { model: 'gpt-9' })).rejects.toBeInstanceOf(NotFoundError);
  await expect(started.ask('hi', { n: 0 })).rejects.toBeInstanceOf(BadRequestError);
  await expect(started.ask('hi', { n: 17 })).rejects.toThrow('n must be an integer from 1 to 16.');
  await expect(started.ask('hi', { messages: [] })).rejects.toThrow('messages must be an array');
  const garbage = await fetch(`${started.demo.url}/chat/completions`, { method: 'POST', body: '{' });
  expect([garbage.status, await garbage.json()]).toMatchObject([
    400,
    { error: { type: 'invalid_request_error', code: 400 } },
  ]);
  expect((await fetch(`${started.demo.url}/elsewhere`)).status).toBe(404);
});
