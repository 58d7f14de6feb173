import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { heldBy, MESSAGE_PRICE, refusalOf, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld('[upstream]\ncall_timeout_ms = 3000\n');

type Break = (response: ServerResponse, id: unknown) => void;
/** An id of 1 stands for that of the request. */
const answer =
  (status: number, headers: Record<string, string>, body: string): Break =>
  (response, id) =>
    void response.writeHead(status, headers).end(body.replace('"id":1,', `"id":${JSON.stringify(id)},`));
const json = { 'content-type': 'application/json' };

const BREAKS: Readonly<Record<string, Break>> = {
  'HTTP 500': answer(500, { 'content-type': 'text/plain' }, 'stack at secret.ts:12'),
  'HTTP 500 with JSON': answer(500, json, '{"error":"no"}'),
  'HTTP 401': answer(401, { 'www-authenticate': 'Bearer' }, ''),
  'HTTP 403 with a JSON-RPC error': answer(
    403,
    json,
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}',
  ),
  'a redirect': answer(302, { location: 'http://169.254.169.254/latest' }, ''),
  'a permanent redirect': answer(308, { location: 'https://elsewhere.example/' }, ''),
  garbage: answer(200, json, '{"jsonrpc":"2.0","id":1,"resu<<<'),
  'an empty body': answer(200, json, ''),
  'no content': answer(204, {}, ''),
  HTML: answer(200, { 'content-type': 'text/html' }, '<html>hello</html>'),
  'a batch': answer(
    200,
    json,
    '[{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"b","status":{"state":"TASK_STATE_COMPLETED"}}}}]',
  ),
  'a request': answer(200, json, '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}'),
  'the answer to another request': answer(
    200,
    json,
    JSON.stringify({ jsonrpc: '2.0', id: 'another', result: taskResult('other', 'COMPLETED') }),
  ),
  'the error of another request': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Task not found"}}',
  ),
  'an event of another request': answer(
    200,
    { 'content-type': 'text/event-stream' },
    `data: ${JSON.stringify({ jsonrpc: '2.0', id: 2, result: taskResult('other-event', 'COMPLETED') })}\n\n`,
  ),
  'neither a task nor a message': answer(200, json, '{"jsonrpc":"2.0","id":1,"result":{"surprise":true}}'),
  'a result that is a number': answer(200, json, '{"jsonrpc":"2.0","id":1,"result":7}'),
  'a result and an error': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"x","status":{"state":3}}},"error":{"code":1,"message":"x"}}',
  ),
  'a task without an id': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":1,"result":{"task":{"status":{"state":"TASK_STATE_COMPLETED"}}}}',
  ),
  'a task whose id is too long': answer(
    200,
    json,
    JSON.stringify({ jsonrpc: '2.0', id: 1, result: taskResult('x'.repeat(257), 'COMPLETED') }),
  ),
  'a task whose id is half a pair': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"\\ud800","status":{"state":"TASK_STATE_COMPLETED"}}}}',
  ),
  'a task whose id has a NUL': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"a\\u0000b","status":{"state":"TASK_STATE_COMPLETED"}}}}',
  ),
  'an empty stream': answer(200, { 'content-type': 'text/event-stream' }, ''),
  'a stream of comments': answer(200, { 'content-type': 'text/event-stream' }, ': hello\n\n: hello\n\n'),
  'a stream of garbage': answer(200, { 'content-type': 'text/event-stream' }, 'data: {"jsonrpc":"2.0",\n\n'),
  'a key that stands twice': answer(
    200,
    json,
    '{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[]}},"result":{"task":{"id":"x","status":{"state":3}}}}',
  ),
  'a connection that is cut': (response) => void response.destroy(),
  'a body that is cut': (response) => {
    response.writeHead(200, { ...json, 'content-length': '1000' });
    response.write('{"jsonrpc":"2.0",', () => response.destroy());
  },
};

test.each(Object.keys(BREAKS))('%s: an error in words, and nothing charged', async (name) => {
  const { url } = await serveRaw(calls.world, ({ response, id }) => BREAKS[name]!(response, id));
  expect(
    await calls.spent(async () => {
      for (const wire of [RPC, REST]) {
        const talk = calls.talk(url, wire);
        const refused = refusalOf(await talk.sent('work'));
        expect(refused, wire.name).not.toBeNull();
        expect(refused!.message).not.toMatch(/secret|undefined|\[object/);
        if (name.includes('redirect')) expect(refused!.message).toMatch(/status 30[28]$/);
        expect(wire === RPC ? refused!.code : refused!.status, `${wire.name} ${refused!.message}`).toBe(
          wire === RPC ? -32_017 : 502,
        );
        const opened = await talk.open('SendStreamingMessage', {
          message: { messageId: `s ${wire.name} ${name}`, role: 'ROLE_USER', parts: [{ text: 'work' }] },
        });
        if ('next' in opened) await expect(opened.rest()).rejects.toThrow();
        else expect(wire === RPC ? refusalOf(opened)?.code : opened.status).toBe(wire === RPC ? -32_017 : 502);
      }
    }),
  ).toBe(0n);
});

test.each([
  ['without end', '['.repeat(100_000)],
  ['with their ends', '['.repeat(100_000) + ']'.repeat(100_000)],
])('an answer of brackets %s is too large: charged, and told', async (_ends, brackets) => {
  const body = `{"jsonrpc":"2.0","id":1,"result":{"task":${brackets}}}`;
  const { url } = await serveRaw(calls.world, ({ response, id }) => answer(200, json, body)(response, id));
  expect(
    await calls.spent(async () => {
      const told = await calls.talk(url).sent('work');
      expect(told.text).toContain('is charged but cannot be delivered');
      expect(told.text.length).toBeLessThan(2_000);
    }),
  ).toBe(MESSAGE_PRICE);
});

test('errors of the agent are passed on in its words, and are free', async () => {
  for (const code of [-32_602, -32_001, -32_005, -32_603, -32_004, 42]) {
    const { url } = await serveRaw(calls.world, ({ error }) => error(code, 'I would rather not'));
    expect(
      await calls.spent(async () => {
        expect((await calls.talk(url).sent('work')).error).toMatchObject({ code, message: 'I would rather not' });
        const rest = refusalOf(await calls.talk(url, REST).sent('work'));
        expect(rest?.message).toBe('I would rather not');
        expect(rest!.status).toBeLessThan(600);
      }),
    ).toBe(0n);
  }
});

test('a stream that is cut, at whatever point: its task goes on, and is charged once by its end', async () => {
  for (const after of [1, 2, 3]) {
    const id = `cut-${after}`;
    let polls = 0;
    const { url } = await serveRaw(calls.world, (exchange) => {
      if (exchange.request.method === 'GetTask') {
        polls += 1;
        return exchange.result(taskResult(id, polls < 2 ? 'WORKING' : 'COMPLETED').task);
      }
      const events = [
        taskResult(id, 'WORKING'),
        statusEvent(id, 'WORKING'),
        { artifactUpdate: { taskId: id, contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'half' }] } } },
      ];
      for (const event of events.slice(0, after)) writeEvent(exchange, event);
      exchange.response.write('data: {"jsonrpc":"2.0","id":1,"result":{"statu', () => exchange.response.destroy());
    });
    expect(
      await calls.spent(async () => {
        const stream = await calls.talk(url).stream('work');
        for (let event = 0; event < after; event += 1) expect(await stream.next()).not.toBeNull();
        await expect(stream.next()).rejects.toThrow('the task continues');
        expect((await calls.talk(url).get(id)).state).toBe('working');
        expect(await calls.locked()).toBe(MESSAGE_PRICE);
        await calls.pollSoon();
        await calls.world.spine.quiet();
      }),
    ).toBe(MESSAGE_PRICE);
  }
});

test('a stream that is cut after its end was seen is whole', async () => {
  const { url } = await serveRaw(calls.world, (exchange) => {
    writeEvent(exchange, taskResult('ended', 'WORKING'));
    writeEvent(exchange, statusEvent('ended', 'COMPLETED'));
    setImmediate(() => exchange.response.destroy());
  });
  expect(
    await calls.spent(async () => expect(await (await calls.talk(url).stream('work')).rest()).toHaveLength(2)),
  ).toBe(MESSAGE_PRICE);
});

test('an agent that forgot a task after it began: what was locked goes back', async () => {
  const { url } = await serveRaw(calls.world, ({ request, result, error }) =>
    request.method === 'GetTask' ? error(-32_001, 'Task not found') : result(taskResult('forgotten', 'WORKING')),
  );
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      await talk.task('work');
      expect((await talk.call('GetTask', { id: 'forgotten' })).error?.code).toBe(-32_001);
      expect(await calls.locked()).toBe(0n);
    }),
  ).toBe(0n);
});

test('events without end are ended by the clock of the call, and their task by whoever sees its end', async () => {
  let timer: NodeJS.Timeout | undefined;
  const { url } = await serveRaw(calls.world, (exchange) => {
    if (exchange.request.method === 'GetTask') return exchange.result(taskResult('endless', 'COMPLETED').task);
    writeEvent(exchange, taskResult('endless', 'WORKING'));
    timer = setInterval(() => writeEvent(exchange, statusEvent('endless', 'WORKING')), 50);
    exchange.response.on('close', () => clearInterval(timer));
  });
  expect(
    await calls.spent(async () => {
      const stream = await calls.talk(url).stream('work');
      await expect(stream.rest()).rejects.toThrow('the task continues');
      await calls.pollSoon();
      await calls.world.spine.quiet();
      expect(heldBy(await calls.talk(url).call('GetTask', { id: 'endless' }))['id']).toBe('endless');
    }),
  ).toBe(MESSAGE_PRICE);
  clearInterval(timer);
});

test('an agent that says nothing is given up when the time of the call is over', async () => {
  const { url } = await serveRaw(calls.world, () => {});
  expect(
    await calls.spent(async () =>
      expect(refusalOf(await calls.talk(url).sent('work'))?.message).toMatch(/did not finish in time/),
    ),
  ).toBe(0n);
});

describe('where a call may last', () => {
  // However slow the machine is, the bytes end this stream and not the clock.
  const unhurried = useCallsWorld('[upstream]\nreply_bytes_max = 2097152\n');

  test('an event that is too large, and does not end, ends the stream and its task', async () => {
    let open = true;
    const { url } = await serveRaw(unhurried.world, (exchange) => {
      if (exchange.request.method === 'GetTask')
        return exchange.result(taskResult('large', open ? 'WORKING' : 'COMPLETED').task);
      writeEvent(exchange, taskResult('large', 'WORKING'));
      const text = 'x'.repeat(1024 * 1024);
      exchange.response.write(
        'data: {"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"large","artifact":{"artifactId":"a","parts":[{"text":"',
      );
      exchange.response.on('close', () => (open = false));
      const push = () => {
        if (open && !exchange.response.destroyed) exchange.response.write(text, () => setImmediate(push));
      };
      push();
    });
    expect(
      await unhurried.spent(async () => {
        expect((await (await unhurried.talk(url).stream('work')).rest()).at(-1)).toMatchObject({
          type: 'status',
          state: 'canceled',
        });
        await unhurried.world.spine.quiet();
      }),
    ).toBe(MESSAGE_PRICE);
  });
});
