import { createJSONRPCErrorResponse, JSONRPCServer } from 'json-rpc-2.0';
import { expect, test } from 'vitest';
import { createReplyMemory } from '#call';
import { createDispatch, type Context } from '../../../src/console/rpc/dispatch.ts';
import type { InnerRequester } from '../../../src/console/rpc/inner-request.ts';
import { methodsOf } from '../../../src/console/rpc/method-table.ts';
import { readEntry } from '../../../src/console/rpc/read-body.ts';
import { createHeldReplies, runBatch } from '../../../src/console/rpc/answer-body.ts';
import { resultOf } from '../../../src/console/rpc/outcome.ts';
import { request, useRpcWorld } from './rpc-world.ts';

// What json-rpc-2.0 does when it is left alone, and that none of it is seen through the endpoint.

const world = useRpcWorld();
const bare = () => {
  const server = new JSONRPCServer({ errorListener: () => {} });
  server.addMethod('ping', () => 'pong');
  return server;
};

test('a batch with null: the library rejects, the endpoint answers each', async () => {
  await expect(Promise.resolve(bare().receiveJSON('[null]'))).rejects.toThrow(TypeError);
  const invalid = { jsonrpc: '2.0', id: null, error: { code: -32600 } };
  expect(await world.batch([null])).toMatchObject([invalid]);
  expect(await world.batch([request(1, 'ping'), null, 1, [], request(2, 'ping')])).toMatchObject([
    { id: 1, result: 'pong' },
    invalid,
    invalid,
    invalid,
    { id: 2 },
  ]);
});

test('a batch of one: the library answers without the array, the endpoint with it', async () => {
  expect(await bare().receiveJSON(JSON.stringify([request(1, 'ping')]))).not.toBeInstanceOf(Array);
  expect(await world.batch([request(1, 'ping')])).toEqual([{ jsonrpc: '2.0', id: 1, result: 'pong' }]);
});

test('what is thrown: the library tells it to the client with code 0, the endpoint tells the operator alone', async () => {
  const server = bare();
  const secret = 'password=hunter2';
  server.addMethod('fails', () => {
    throw new Error(secret);
  });
  expect(await server.receive(request(1, 'fails') as never)).toEqual(createJSONRPCErrorResponse(1, 0, secret));

  const told: unknown[] = [];
  const fails: InnerRequester = async () => {
    throw new Error(secret);
  };
  const dispatch = createDispatch({ methods: methodsOf(() => true), ask: fails, discover: async () => resultOf({}) });
  const entry = readEntry(JSON.stringify(request(1, 'ping')));
  if (entry?.kind !== 'call') throw new Error('no call');
  const gone = new AbortController().signal;
  const context: Context = {
    carried: {},
    peer: '127.0.0.1',
    requestId: 'r',
    gone,
    idempotencyKey: null,
    count: async () => {},
    report: (error) => told.push(error),
  };
  const outcome = await dispatch(entry.message, context);
  expect(JSON.parse(outcome.text)).toEqual({
    code: -32603,
    message: 'Internal error',
    data: { type: 'internal', status: 500 },
  });
  expect(told).toMatchObject([{ message: secret }]);
});

test('as many as come at once: the library runs them all, the endpoint eight', async () => {
  let running = 0;
  let most = 0;
  const waits: (() => void)[] = [];
  const server = bare();
  server.addMethod(
    'waits',
    () => new Promise<void>((resolve) => (waits.push(resolve), (most = Math.max(most, ++running)))),
  );
  const entries = Array.from({ length: 50 }, (_, id) => request(id, 'waits'));
  const all = server.receive(entries as never);
  expect(most).toBe(50);
  for (const wake of waits.splice(0)) wake();
  await all;

  running = most = 0;
  const order: number[] = [];
  const replies = await runBatch(
    entries.map((entry) => readEntry(JSON.stringify(entry))!),
    {
      held: createHeldReplies(
        createReplyMemory({ repliesBytesMax: 1e9, replyBytesMax: 1e9 }).open('a', false, null),
        Infinity,
      ),
      isBilled: () => true,
      placeOf: () => null,
      gone: new AbortController().signal,
      async run(_message, place) {
        most = Math.max(most, ++running);
        // The later an entry of its eight, the earlier it ends.
        for (let turns = 5 * (8 - (place % 8)); turns > 0; turns -= 1)
          await new Promise((resolve) => setImmediate(resolve));
        order.push(place);
        running -= 1;
        return resultOf(place);
      },
    },
  );
  expect(most).toBe(8);
  expect(order).not.toEqual(order.toSorted((a, b) => a - b));
  expect(replies.map((reply) => (JSON.parse(reply.toString()) as { result: number }).result)).toEqual(
    entries.map(({ id }) => id),
  );
});

test('a method of every object is none', async () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', ''])
    expect(await world.call(name)).toMatchObject({ error: { code: -32601 } });
});

test('an id beyond 2^53: the library would round it, the endpoint sends it back', async () => {
  const id = '12345678901234567890';
  const response = await world.post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
  expect(await response.text()).toBe(`{"jsonrpc":"2.0","id":${id},"result":"pong"}`);
});
