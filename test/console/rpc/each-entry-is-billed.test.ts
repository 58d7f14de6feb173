import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { AGENT, AGENT_COST, message, request, TOOL_COST, TOOLS, useRpcWorld } from './rpc-world.ts';

// Each entry is one call in the books, by the route that it went through.

const world = useRpcWorld();
const costOf = (reply: unknown) => {
  const [, usd] = /"cost":"([\d.]+)"/.exec(JSON.stringify(reply)) ?? [];
  return BigInt(Math.round(Number(usd) * 1e6));
};

test('a model, a tool and an agent are charged, and what fails is not', async () => {
  world.spine.provider.log.length = 0;
  const before = (await world.spine.locks()).length;
  let replies: Awaited<ReturnType<typeof world.batch>> = [];
  const charged = await world.charged(async () => {
    replies = await world.batch([
      request('chat', 'chat/completions', ask('hello !tokens:7')),
      request('fails', 'chat/completions', ask('hello !status:500')),
      request('tool', 'tools/call', { service: TOOLS, name: 'test_simple_text', arguments: {} }),
      request('agent', 'message/send', { agent: AGENT, message: message('echo hi') }),
    ]);
  });
  expect(replies.map(({ id }) => id)).toEqual(['chat', 'fails', 'tool', 'agent']);
  expect(replies[1]).toMatchObject({ error: { code: -32017, data: { type: 'provider_unavailable', status: 500 } } });
  const [served] = world.spine.provider.log.filter(({ plannedTokens }) => plannedTokens === 7);
  const chat = BigInt(served!.promptTokens + 2 * 7);
  expect(charged).toBe(chat + TOOL_COST + AGENT_COST);
  expect([costOf(replies[0]), costOf(replies[2]), costOf(replies[3])]).toEqual([chat, TOOL_COST, AGENT_COST]);
  expect(await world.spine.locks()).toHaveLength(before + 4);
});

test('fifty entries are fifty calls', async () => {
  world.spine.provider.log.length = 0;
  const charged = await world.charged(async () => {
    const replies = await world.batch(
      Array.from({ length: 50 }, (_, id) => request(id, 'chat/completions', ask(`hello ${id} !tokens:2`))),
    );
    expect(replies.map(({ id, result }) => [id, result?.['object']])).toEqual(
      Array.from({ length: 50 }, (_, id) => [id, 'chat.completion']),
    );
  });
  expect(world.spine.provider.log).toHaveLength(50);
  expect(charged).toBe(world.spine.provider.log.reduce((sum, { promptTokens }) => sum + BigInt(promptTokens) + 4n, 0n));
});

test('a notification is not executed: nobody could be told what it cost', async () => {
  const notification = { jsonrpc: '2.0', method: 'chat/completions', params: ask('hello') };
  world.spine.provider.log.length = 0;
  const charged = await world.charged(async () => {
    for (const body of [notification, [notification], [notification, notification]]) {
      const response = await world.post(body);
      expect(response.status).toBe(204);
      expect(await response.text()).toBe('');
    }
    expect(await world.batch([notification, request(1, 'ping'), notification])).toEqual([
      { jsonrpc: '2.0', id: 1, result: 'pong' },
    ]);
  });
  expect(charged).toBe(0n);
  expect(world.spine.provider.log).toHaveLength(0);
});

test('each has a request id of its own, after that of the batch', async () => {
  const replies = await world.batch([request(1, 'ping'), request(2, 'chat/completions', ask('hello'))], {
    'x-request-id': 'mine',
  });
  const id = (replies[1]!.result!._meta!['tollgate/generation'] as { id: string }).id;
  expect(await world.spine.generation(id)).toMatchObject({ request_id: 'mine-1' });
  const long = 'x'.repeat(128);
  const [other] = await world.batch([request(1, 'chat/completions', ask('hello'))], { 'x-request-id': long });
  expect(
    await world.spine.generation((other!.result!._meta!['tollgate/generation'] as { id: string }).id),
  ).toMatchObject({
    request_id: `${'x'.repeat(126)}-0`,
  });
});

test('a receipt where it is wished for', async () => {
  const wish = { _meta: { 'tollgate/receipt': true } };
  const replies = await world.batch([
    request(1, 'chat/completions', { ...ask('hello'), ...wish }),
    request(2, 'chat/completions', ask('hello')),
    request(3, 'tools/call', { service: TOOLS, name: 'test_simple_text', arguments: {}, ...wish }),
    request(4, 'message/send', { agent: AGENT, message: message('echo hi'), ...wish }),
  ]);
  const receipt = (reply: unknown) => /"tollgate\/receipt":"([\w-]+\.[\w-]+\.[\w-]+)"/.exec(JSON.stringify(reply))?.[1];
  expect(replies.map((reply) => receipt(reply) !== undefined)).toEqual([true, false, true, true]);
});
