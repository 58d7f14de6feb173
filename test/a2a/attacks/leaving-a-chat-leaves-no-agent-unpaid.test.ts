import { expect, test } from 'vitest';
import { MESSAGE_PRICE, useCallsWorld } from '../calls/support/calls-world.ts';
import { serveRaw, taskResult } from '../calls/support/raw-served.ts';

const calls = useCallsWorld('[billing]\ndrain_ms = 50\n');

test.each(['chat', 'MCP'])(
  'an agent that is asked over %s is paid for what it does after the client left',
  async (door) => {
    const { spine } = calls.world;
    const asked = Promise.withResolvers<void>();
    const leaving = new AbortController();
    const drained = Promise.withResolvers<void>();
    const { service } = await serveRaw(calls.world, async ({ result }) => {
      asked.resolve();
      await drained.promise;
      result(taskResult(crypto.randomUUID(), 'COMPLETED'));
    });
    const post =
      door === 'chat'
        ? spine.post(
            '/chat/completions',
            { model: `a2a/${service}`, messages: [{ role: 'user', content: 'x' }] },
            {},
            leaving.signal,
          )
        : spine.post(
            `/mcp/a2a/${service}`,
            {
              jsonrpc: '2.0',
              id: 1,
              method: 'tools/call',
              params: { name: 'send_message', arguments: { message: 'x' } },
            },
            {},
            leaving.signal,
          );
    const spent = await calls.spent(async () => {
      await asked.promise;
      leaving.abort();
      await post.catch(() => {});
      // Well past the drain bound.
      setTimeout(drained.resolve, 400);
      await drained.promise;
    });
    expect(spent).toBe(MESSAGE_PRICE);
  },
);
