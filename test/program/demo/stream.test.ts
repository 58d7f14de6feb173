import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDemo } from './demo-client.ts';

let started: Awaited<ReturnType<typeof startDemo>>;
beforeAll(async () => {
  started = await startDemo();
});
afterAll(() => started.demo.close());

const messages = [{ role: 'user' as const, content: 'count to 30' }];

async function events(body: object): Promise<string[]> {
  const response = await fetch(`${started.demo.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'demo/chat', messages, stream: true, ...body }),
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  return (await response.text())
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''));
}

it('a stream says what the whole answer says, one token a chunk, with the usage last, asked or not', async () => {
  const whole = await started.ask('count to 30', { n: 2 });
  const received = await events({ n: 2 });
  expect(received.at(-1)).toBe('[DONE]');
  const chunks = received.slice(0, -1).map((event) => JSON.parse(event));
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
  for (const index of [0, 1]) {
    const own = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
    expect(own.map((choice) => choice.delta.content ?? '').join('')).toBe(whole.choices[index]?.message.content);
    expect(own.at(-1)).toMatchObject({ delta: {}, finish_reason: 'stop' });
    // The role first and the finish reason last are no tokens.
    expect((own.length - 2) * 2).toBe(whole.usage?.completion_tokens);
  }
});

it('takes its time between tokens when told so, by body or header', async () => {
  const begun = performance.now();
  const received = await events({ max_tokens: 10, pace_ms: 20 });
  expect(performance.now() - begun).toBeGreaterThan(10 * 20 * 0.9);
  expect(received).toHaveLength(14);
});

it('a client that leaves in the middle disturbs nobody', async () => {
  const stream = await started.client.chat.completions.create(
    { model: 'demo/chat', messages, stream: true },
    { headers: { 'x-pace-ms': '5' } },
  );
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content === '5') break;
  expect((await events({})).at(-1)).toBe('[DONE]');
});
