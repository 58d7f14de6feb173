import { expect, test } from 'vitest';

import { json, startScripted } from '../sessions/scripted-server.ts';
import { open, post, startWorld } from '../sessions/session-world.ts';

test('members that JSON-RPC does not have never leave the gateway, and those that it has pass as they were written', async () => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.id === undefined ? undefined : json(response, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const extra = '"tool":{"name":"dear"},"call":1';
  for (const [sent, forwarded] of [
    [
      `{${extra},"id":7,"method":"completion/complete","jsonrpc":"2.0","params":{ "a" : 1e0 }}`,
      '{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{ "a" : 1e0 }}',
    ],
    [
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":[ ]},${extra}}`,
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":[ ]}}',
    ],
    [
      `{"jsonrpc":"2.0","id":8,${extra},"result":{"r":"\\u0041"},"params":{"name":"dear"}}`,
      '{"jsonrpc":"2.0","id":8,"result":{"r":"\\u0041"}}',
    ],
    [
      `[{"jsonrpc":"2.0","method":"notifications/progress","params":{},${extra}}]`,
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}',
    ],
    // Nothing to leave out: not a character changes.
    [
      '{ "id":9, "jsonrpc":"2.0","method":"completion/complete" }',
      '{ "id":9, "jsonrpc":"2.0","method":"completion/complete" }',
    ],
  ] as const) {
    const reply = await post(gateway.url, 'alice', id, sent);
    expect(reply.status, await reply.text()).toBeLessThan(300);
    expect(server.asked.at(-1)!.text).toBe(forwarded);
  }
  expect(await world.faults()).toEqual([]);
});
