import { expect, test } from 'vitest';
import { useCallsWorld } from '../calls/support/calls-world.ts';
import { giftOf } from '../calls/support/nested.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';

const calls = useCallsWorld();

const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });

test('what is free is open to an agent while its call goes on, and no longer', async () => {
  const { spine } = calls.world;
  const tries = async (token: string) => {
    const authorization = `Bearer ${token}`;
    return Promise.all([
      spine.post('/mcp', rpc('tools/list'), { authorization }),
      spine.post('/a2a', rpc('ListTasks', { tenant: 'run/agent' }), { authorization, 'a2a-version': '1.0' }),
      spine.post('/rpc', rpc('tools/list'), { authorization }),
    ]).then((responses) => responses.map(({ status }) => status));
  };
  let token = '';
  let during: readonly number[] = [];
  const { url } = await serveRaw(
    calls.world,
    async (exchange) => {
      ({ token } = giftOf(exchange).metadata!);
      during = await tries(token);
      exchange.result(taskResult('t-1', 'COMPLETED'));
    },
    { name: 'run/agent', pricing: 'per_call = 0.001\nnested_max = 0.01' },
  );
  await calls.talk(url).task('work');
  expect(during).toEqual([200, 200, 200]);
  await calls.world.spine.quiet();
  expect(await tries(token)).toEqual([403, 403, 403]);
});
