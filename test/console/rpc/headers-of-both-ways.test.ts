import { expect, test } from 'vitest';
import { ask, MODEL } from '../../support/spine.ts';
import { AGENT, message, request, useRpcWorld } from './rpc-world.ts';

// What a route reads from the headers of a request, and tells in those of its reply, also gets through this endpoint.

const world = useRpcWorld();

test('an answer says that its cap was lowered, as at its own endpoint', async () => {
  const body = ask('hello', { max_tokens: 1_000_000 });
  const own = await world.spine.post('/chat/completions', body);
  const answer = await world.post(request(1, 'chat/completions', body));
  expect([own.headers.get('x-max-tokens'), answer.headers.get('x-max-tokens')]).toEqual(['4096', '4096']);
  await own.text();
  await answer.text();
});

test('an answer says whether its request was translated, as at its own endpoint', async () => {
  const body = { model: MODEL, input: 'hello', max_output_tokens: 50 };
  const own = await world.spine.post('/responses', body);
  const answer = await world.post(request(1, 'responses/create', body));
  expect([own.headers.get('x-tollgate-wire'), answer.headers.get('x-tollgate-wire')]).toEqual([
    'translated',
    'translated',
  ]);
  await own.text();
  await answer.text();
});

test.each(['A2A-Extensions', 'X-A2A-Extensions'])('an agent is asked with the extensions of %s', async (name) => {
  const extension = `https://extensions.test/${name}`;
  const { error } = await world.call(
    'message/send',
    { agent: AGENT, message: message('hello') },
    { [name]: extension },
  );
  expect(error).toBeUndefined();
  // A slow message is also asked for by later requests, without extensions.
  const asked = world.agent.received.map(({ headers }) => headers['a2a-extensions'] ?? headers['x-a2a-extensions']);
  expect(asked).toContain(extension);
});
