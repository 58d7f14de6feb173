import { afterAll, beforeAll, expect, it } from 'vitest';
import { startProvider } from '../support/provider.ts';
import type { TestProvider, UsageClaim } from '../support/provider.ts';
import { chatBody, postRaw, readEvents } from './raw-client.ts';

let provider: TestProvider;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

const honest = '{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}';
const claims: readonly [UsageClaim, readonly string[]][] = [
  ['true', [honest]],
  ['none', []],
  ['null', ['null']],
  ['empty', ['{}']],
  ['zero', ['{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}']],
  ['x1000', ['{"prompt_tokens":9000,"completion_tokens":3000,"total_tokens":12000}']],
  ['huge', ['{"prompt_tokens":1e300,"completion_tokens":1e300,"total_tokens":2e300}']],
  ['negative', ['{"prompt_tokens":-9,"completion_tokens":-3,"total_tokens":-12}']],
  ['fraction', ['{"prompt_tokens":9.5,"completion_tokens":3.5,"total_tokens":13}']],
  ['strings', ['{"prompt_tokens":"9","completion_tokens":"3","total_tokens":"12"}']],
  ['nan', ['{"prompt_tokens":"NaN","completion_tokens":"NaN","total_tokens":"NaN"}']],
  ['nan-literal', ['{"prompt_tokens":NaN,"completion_tokens":NaN,"total_tokens":NaN}']],
  ['no-total', ['{"prompt_tokens":9,"completion_tokens":3}']],
  ['wrong-total', ['{"prompt_tokens":9,"completion_tokens":3,"total_tokens":19}']],
  ['twice', [honest, honest]],
  [
    'every',
    [...[1, 2, 3].map((done) => `{"prompt_tokens":9,"completion_tokens":${done},"total_tokens":${9 + done}}`), honest],
  ],
  ['after-done', [honest]],
];

it.each(claims)('%s', async (claim, expected) => {
  provider.instruct({ usage: claim, tokens: 3 });
  const reply = await postRaw(`${provider.url}/chat/completions`, {
    model: 'm',
    messages: [{ role: 'user', content: 'hello' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  const events = readEvents(reply.body);
  const claimed = events
    .flatMap((event) => [...event.matchAll(/"usage":(\{[^}]*\}|null)\}/g)].map((match) => match[1]))
    .filter((text) => claim === 'null' || text !== 'null');
  expect(claim === 'null' ? claimed.slice(-1) : claimed).toEqual(expected);
  expect(provider.log.at(-1)?.usages).toEqual(expected);
  const end = events.indexOf('[DONE]');
  expect(end).toBe(claim === 'after-done' ? events.length - 2 : events.length - 1);
});

it('the finish chunk holds it where told, and nothing where nobody asked', async () => {
  const inFinish = readEvents(
    (await postRaw(`${provider.url}/chat/completions`, chatBody('!usage-place:finish'))).body,
  );
  expect(JSON.parse(inFinish.at(-2) ?? '')).toMatchObject({
    choices: [{ finish_reason: 'stop' }],
    usage: { completion_tokens: 12 },
  });
  const unasked = await postRaw(`${provider.url}/chat/completions`, chatBody('', { stream_options: undefined }));
  expect(unasked.body.includes('usage')).toBe(false);
});
