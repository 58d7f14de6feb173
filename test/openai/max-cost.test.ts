import { afterEach, expect, test } from 'vitest';
import { startGateway } from './support/gateway.ts';
import { USAGE } from './support/replies.ts';

// `max_cost` bounds what one ordinary chat call may cost: an offer that may cost more does not serve it. The
// provider is not told of it.

const ask = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 };
const completion = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
  usage: USAGE,
});
let gateway: Awaited<ReturnType<typeof startGateway>>;
afterEach(() => gateway.close());

test.each([1, '0.01', null])('a bound that is high enough, %s, changes nothing and stays here', async (max_cost) => {
  gateway = await startGateway({ reply: () => ({ chunks: [completion] }) });
  expect((await gateway.post({ ...ask, max_cost, max_tool_rounds: 3, tollgate: { task_id: 't' } })).status).toBe(200);
  const sent = JSON.parse(gateway.state.upstream[0]!.body as string) as Record<string, unknown>;
  for (const field of ['max_cost', 'max_tool_rounds', 'tollgate']) expect(sent).not.toHaveProperty(field);
});

test('a bound that is too low refuses the call, and says what it may cost', async () => {
  gateway = await startGateway({ reply: () => ({ chunks: [completion] }) });
  const response = await gateway.post({ ...ask, max_cost: 0.0002 });
  expect(response.status).toBe(422);
  expect(((await response.json()) as { error: object }).error).toMatchObject({
    type: 'unprocessable',
    param: 'max_cost',
    message: 'max_cost is 0.0002 USD, but acme/small may cost 0.000286 USD',
  });
  expect(gateway.state.upstream).toEqual([]);
});

test.each(['cheap', -1, '0.0000001', 'NaN'])('what is no amount is refused: %s', async (max_cost) => {
  gateway = await startGateway({ reply: () => ({ chunks: [completion] }) });
  const response = await gateway.post({ ...ask, max_cost });
  expect(response.status).toBe(400);
  expect(((await response.json()) as { error: object }).error).toMatchObject({
    type: 'invalid_request',
    param: 'max_cost',
  });
});

test('the x-max-cost header is the same, and of both the lower one counts', async () => {
  gateway = await startGateway({ reply: () => ({ chunks: [completion] }) });
  expect((await gateway.post(ask, { 'x-max-cost': '0.0002' })).status).toBe(422);
  expect((await gateway.post({ ...ask, max_cost: 1 }, { 'x-max-cost': '0.0002' })).status).toBe(422);
  expect((await gateway.post({ ...ask, max_cost: 0.0002 }, { 'x-max-cost': '1' })).status).toBe(422);
  expect((await gateway.post({ ...ask, max_cost: 1 }, { 'x-max-cost': '0.01' })).status).toBe(200);
  expect((await gateway.post(ask, { 'x-max-cost': 'much' })).status).toBe(400);
});
