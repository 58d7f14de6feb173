import { expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { parseMessage, type ResponseMessage } from '../../../src/gateway/json-rpc/message.ts';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

const FORM =
  '{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}';
const URL_FORM = '{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a.example/"}}';
const SAMPLE = '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}';
const SAMPLE_TOOLS = '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}';
const ROOTS = '{"method":"roots/list"}';

const asks = (...requests: string[]) =>
  `{"resultType":"input_required","inputRequests":{${requests.map((request, index) => `"k${index}":${request}`)}}}`;
const idOf = (event: string) => (JSON.parse(event) as { readonly id: string }).id;

test.each([
  [FORM, {}, 'elicitation'],
  [FORM, { elicitation: { url: {} } }, 'elicitation.form'],
  [URL_FORM, { elicitation: {} }, 'elicitation.url'],
  [SAMPLE, { elicitation: {} }, 'sampling'],
  [SAMPLE_TOOLS, { sampling: {} }, 'sampling.tools'],
  [ROOTS, { sampling: {} }, 'roots'],
])('a client is not asked %s with %j: the result says that %s is missing', async (request, capabilities, missing) => {
  const server = await startRawServer((_got, reply) => reply.result(asks(request)));
  const world = await startBridge(server.url);
  const { events, text, charged } = await world.ask(world.session({ capabilities }), toolCall('1'));
  expect(JSON.parse(text!)).toMatchObject({
    id: 1,
    result: { isError: true, content: [{ text: expect.stringMatching(`the capability ${missing}$`) as string }] },
  });
  expect([events, charged, server.got.length]).toEqual([[], 0n, 1]);
  expect(world.endings).toEqual(['tool: isError, 0']);
  expect(await world.faults()).toEqual([]);
});

test('what is no tool says so with an error', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url);
  const { text } = await world.ask(world.session(), { id: 1, method: 'prompts/get', params: { name: 'p' } });
  expect(JSON.parse(text!)).toMatchObject({
    error: { code: -32_603, message: expect.stringContaining('elicitation') as string },
  });
});

test('a client without an event stream is told to take one', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url);
  const { text, charged } = await world.ask(world.session({ capabilities: { elicitation: {} } }), toolCall('1'), {
    events: false,
  });
  expect(text).toContain('text/event-stream');
  expect(charged).toBe(0n);
  expect(await world.faults()).toEqual([]);
});

test('an error that the client answers ends the call, and takes the other questions back', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM, ROOTS)));
  const world = await startBridge(server.url);
  const session = world.session({ capabilities: { elicitation: {}, roots: {} } });
  const asked: string[] = [];
  const { events, text, charged } = await world.ask(session, toolCall('1'), {
    onEvent(event) {
      asked.push(event);
      if (asked.length !== 2) return;
      const refusal = { jsonrpc: '2.0', id: idOf(asked[0]!), error: { code: -1, message: 'User rejected' } };
      world.clientRequests.resolve(session.id, parseMessage(JSON.stringify(refusal)) as ResponseMessage);
    },
  });
  expect(text).toContain('the error -1: User rejected');
  expect(JSON.parse(events[2]!)).toMatchObject({
    method: 'notifications/cancelled',
    params: { requestId: idOf(asked[1]!) },
  });
  expect([events.length, charged, server.got.length, world.clientRequests.count]).toEqual([3, 0n, 1, 0]);
  expect(await world.faults()).toEqual([]);
});

test('a client that does not answer in time is told, and its question is taken back', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url, { answerMs: 20 });
  const { events, text, charged } = await world.ask(
    world.session({ capabilities: { elicitation: {} } }),
    toolCall('1'),
  );
  expect(text).toContain('the client did not answer within 0.02 s');
  expect(JSON.parse(events[1]!)).toMatchObject({
    method: 'notifications/cancelled',
    params: { requestId: idOf(events[0]!) },
  });
  expect([charged, world.clientRequests.count]).toEqual([0n, 0]);
  expect(await world.faults()).toEqual([]);
});

test('an answer from another session is not taken', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url, { answerMs: 50 });
  const taken: boolean[] = [];
  const { text } = await world.ask(world.session({ capabilities: { elicitation: {} } }), toolCall('1'), {
    onEvent(event) {
      if (taken.length > 0) return;
      const answer = parseMessage(
        JSON.stringify({ jsonrpc: '2.0', id: idOf(event), result: { action: 'accept' } }),
      ) as ResponseMessage;
      taken.push(world.clientRequests.resolve(world.session().id, answer));
    },
  });
  expect(taken).toEqual([false]);
  expect(text).toContain('did not answer');
  expect(server.got).toHaveLength(1);
  expect(await world.faults()).toEqual([]);
});

test('a server that always asks for more is not asked for ever', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(ROOTS)));
  const world = await startBridge(server.url);
  const session = world.session({ capabilities: { roots: {} } });
  const { text, charged } = await world.ask(session, toolCall('1'), {
    onEvent: (event) =>
      void world.clientRequests.resolve(
        session.id,
        parseMessage(JSON.stringify({ jsonrpc: '2.0', id: idOf(event), result: { roots: [] } })) as ResponseMessage,
      ),
  });
  expect(text).toContain('more than 16 times');
  expect([charged, server.got.length, world.clientRequests.count]).toEqual([0n, 17, 0]);
  expect(await world.faults()).toEqual([]);
});

test('a call that is over while its client is asked ends free, and does not speak against the provider', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url);
  const { text, charged } = await world.ask(world.session({ capabilities: { elicitation: {} } }), toolCall('1'), {
    timeoutMs: atThisLoad(300),
  });
  expect(text).toContain('the call ended before the client answered');
  expect([charged, world.clientRequests.count, world.bridge.running]).toEqual([0n, 0, 0]);
  expect(await world.faults()).toEqual([]);
});

test('a client that leaves while it is asked leaves nothing behind', async () => {
  const server = await startRawServer((_got, reply) => reply.result(asks(FORM)));
  const world = await startBridge(server.url);
  const gone = new AbortController();
  await world.ask(world.session({ capabilities: { elicitation: {} } }), toolCall('1'), {
    onEvent: () => gone.abort(),
    gone: gone.signal,
  });
  expect([world.clientRequests.count, world.bridge.running]).toEqual([0, 0]);
  expect(world.endings).toHaveLength(1);
  expect(await world.faults()).toEqual([]);
});
