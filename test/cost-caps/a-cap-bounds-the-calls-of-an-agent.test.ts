import { expect, test } from 'vitest';
import { useCallsWorld } from '../a2a/calls/support/calls-world.ts';
import { giftOf } from '../a2a/calls/support/nested.ts';
import { serveRaw, taskResult } from '../a2a/calls/support/raw-served.ts';

// An agent that is asked as a tool may call others with what the cap leaves beside its price, as one that is sent a
// message.

const calls = useCallsWorld();
const META = { 'tollgate/max_cost': '0.006' };

const askAt = (service: string, named: { readonly meta?: object; readonly header?: string }) => ({
  path: `/mcp/a2a/${service}`,
  body: {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'send_message', arguments: { message: 'work' }, _meta: named.meta ?? {} },
  },
  headers: named.header === undefined ? {} : { 'x-max-cost': named.header },
});

test.each([
  ['in _meta', { meta: META }],
  ['by header', { header: '0.006' }],
  ['at both, the lower one', { meta: META, header: '1' }],
])('the agent is given what the cap leaves, and no more is locked: %s', async (_where, named) => {
  const seen: unknown[] = [];
  const { service } = await serveRaw(
    calls.world,
    async (exchange) => {
      seen.push([giftOf(exchange).metadata?.budget_usd, await calls.locked()]);
      exchange.result(taskResult(`capped-${crypto.randomUUID()}`, 'COMPLETED'));
    },
    { pricing: 'per_call = 0.001\nnested_max = 0.05' },
  );
  const { spine } = calls.world;
  const { path, body, headers } = askAt(service, named);
  const spent = await calls.spent(async () => {
    const response = await fetch(spine.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    expect(response.status, await response.text()).toBe(200);
  });
  expect(spent).toBe(1_000n);
  expect(seen).toEqual([['0.005', 6_000n]]);
});
