import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall, type Got, type Reply } from './raw-server.ts';

const subscribe = (uri: unknown, method = 'resources/subscribe') => ({ id: 1, method, params: { uri } });
const unsubscribe = (uri: string) => subscribe(uri, 'resources/unsubscribe');
const DONE = '{"jsonrpc":"2.0","id":1,"result":{}}';

const acknowledge = ({ id, params }: Got, reply: Reply, notifications = params['notifications']) =>
  reply.event(
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, notifications },
    }),
  );
const filterOf = ({ params }: Got) => params['notifications'];
const updated = (uri: string, meta = '') =>
  `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${uri}", "n":1.0${meta}}}`;

/** Messages as they come; `next` waits for one. */
function createHeard() {
  const messages: string[] = [];
  let wake = Promise.withResolvers<void>();
  return {
    messages,
    push(message: string) {
      messages.push(message);
      wake.resolve();
      wake = Promise.withResolvers<void>();
    },
    async next(count: number): Promise<readonly string[]> {
      while (messages.length < count) await wake.promise;
      return messages;
    },
  };
}

test('changes of lists and of the resources that the session subscribed to come on its stream', async () => {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  const world = await startBridge(fixture.url);
  const [session, other] = [world.session(), world.session()];
  const [heard, heardByOther, stop] = [createHeard(), createHeard(), new AbortController()];
  const listening = [
    world.listen(session, heard.push, stop.signal),
    world.listen(other, heardByOther.push, stop.signal),
  ];
  expect((await world.ask(session, subscribe('test://watched-resource'))).text).toBe(DONE);
  // The other session's stream stands as well once this is answered.
  await world.ask(other, subscribe('test://static-text'));
  await world.ask(session, toolCall('1', 'test_trigger_resource_update'));
  await world.ask(session, toolCall('1', 'test_trigger_tool_change'));
  const methods = (messages: readonly string[]) =>
    messages.map((message) => (JSON.parse(message) as { readonly method: string }).method);
  expect(methods(await heard.next(2))).toEqual(['notifications/resources/updated', 'notifications/tools/list_changed']);
  expect(methods(await heardByOther.next(1))).toEqual(['notifications/tools/list_changed']);
  expect(heard.messages.join()).not.toContain('subscriptionId');
  await world.ask(session, unsubscribe('test://watched-resource'));
  await world.ask(session, toolCall('1', 'test_trigger_resource_update'));
  await world.ask(session, toolCall('1', 'test_trigger_prompt_change'));
  expect(methods(await heard.next(3))[2]).toBe('notifications/prompts/list_changed');
  stop.abort();
  await Promise.all(listening);
  expect(await world.faults()).toEqual([]);
});

test('a notification loses the mark of its subscription, and no other byte', async () => {
  const server = await startRawServer((got, reply) => {
    acknowledge(got, reply);
    const mark = `"io.modelcontextprotocol/subscriptionId":${JSON.stringify(got.id)}`;
    reply.event(updated('test://a', `,"_meta":{${mark}}`));
    reply.event(updated('test://b', `,"_meta":{"x":1e2, ${mark}}`));
    reply.event(updated('test://c'));
  });
  const world = await startBridge(server.url);
  const [heard, stop] = [createHeard(), new AbortController()];
  const listening = world.listen(world.session(), heard.push, stop.signal);
  expect(await heard.next(3)).toEqual([
    updated('test://a'),
    updated('test://b', ',"_meta":{"x":1e2}'),
    updated('test://c'),
  ]);
  expect(server.got[0]!.headers).toMatchObject({
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'subscriptions/listen',
  });
  expect(server.got[0]!.text).toContain('"io.modelcontextprotocol/protocolVersion":"2026-07-28"');
  stop.abort();
  await listening;
  await server.got[0]!.closed;
  expect(await world.faults()).toEqual([]);
});

test('the stream that named the old resources is read until the server acknowledges the new ones', async () => {
  const opened: { readonly got: Got; readonly reply: Reply }[] = [];
  const second = Promise.withResolvers<void>();
  const server = await startRawServer((got, reply) => {
    opened.push({ got, reply });
    if (opened.length === 1) acknowledge(got, reply);
    else second.resolve();
  });
  const world = await startBridge(server.url);
  const session = world.session();
  const [heard, stop] = [createHeard(), new AbortController()];
  await world.ask(session, subscribe('test://a'));
  const listening = world.listen(session, heard.push, stop.signal);
  const answers: string[] = [];
  await world.ask(session, { ...subscribe('test://a'), id: 2 });
  const later = world.ask(session, subscribe('test://b')).then(({ text }) => answers.push(text!));
  await second.promise;
  opened[0]!.reply.event(updated('test://a'));
  await heard.next(1);
  expect(answers).toEqual([]);
  acknowledge(opened[1]!.got, opened[1]!.reply);
  await opened[0]!.got.closed;
  await later;
  opened[1]!.reply.event(updated('test://b'));
  expect(await heard.next(2)).toEqual([updated('test://a'), updated('test://b')]);
  expect(opened.map(({ got }) => filterOf(got))).toEqual([
    { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
    { toolsListChanged: true, resourceSubscriptions: ['test://a', 'test://b'] },
  ]);
  stop.abort();
  await listening;
  await opened[1]!.got.closed;
  expect(await world.faults()).toEqual([]);
});

test('the client is told that its stream stands once the server listens, before anything happens', async () => {
  const arrived = Promise.withResolvers<() => void>();
  const server = await startRawServer((got, reply) => arrived.resolve(() => acknowledge(got, reply)));
  const world = await startBridge(server.url);
  const [stop, open] = [new AbortController(), Promise.withResolvers<void>()];
  let isOpen = false;
  const listening = world.listen(
    world.session(),
    () => {},
    stop.signal,
    () => {
      isOpen = true;
      open.resolve();
    },
  );
  const answer = await arrived.promise;
  expect(isOpen).toBe(false);
  answer();
  await open.promise;
  stop.abort();
  await listening;
  await server.got[0]!.closed;
});

test('many changes at once become one request more', async () => {
  const held = Promise.withResolvers<void>();
  const server = await startRawServer(async (got, reply) => {
    if (server.got.length === 2) await held.promise;
    acknowledge(got, reply);
  });
  const world = await startBridge(server.url);
  const [session, stop] = [world.session(), new AbortController()];
  const listening = world.listen(session, () => {}, stop.signal);
  const uris = Array.from({ length: 10 }, (_, index) => `test://${index}`);
  const answers = Promise.all(uris.map((uri) => world.ask(session, subscribe(uri))));
  held.resolve();
  await answers;
  expect(server.got.length).toBeLessThanOrEqual(4);
  expect(filterOf(server.got.at(-1)!)).toEqual({ toolsListChanged: true, resourceSubscriptions: uris });
  stop.abort();
  await listening;
});

test('a second stream of a session takes the place of the first', async () => {
  const server = await startRawServer((got, reply) => acknowledge(got, reply));
  const world = await startBridge(server.url);
  const [session, stop] = [world.session(), new AbortController()];
  const first = world.listen(session, () => {}, stop.signal);
  await world.ask(session, subscribe('test://a'));
  const second = world.listen(session, () => {}, stop.signal);
  expect(await first).toMatchObject({ outcome: 'free', finishReason: 'closed' });
  stop.abort();
  await second;
  await Promise.all(server.got.map(({ closed }) => closed));
});

test('where the server offers nothing to tell, the stream stays open and asks for nothing', async () => {
  const server = await startRawServer(
    (got, reply) => acknowledge(got, reply),
    '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}}}',
  );
  const world = await startBridge(server.url);
  const [session, stop] = [world.session(), new AbortController()];
  const open = Promise.withResolvers<void>();
  const listening = world.listen(session, () => {}, stop.signal, open.resolve);
  await open.promise;
  expect(server.got).toEqual([]);
  await world.ask(session, subscribe('test://a'));
  await world.ask(session, unsubscribe('test://a'));
  expect(server.got.map(filterOf)).toEqual([{ resourceSubscriptions: ['test://a'] }]);
  await server.got[0]!.closed;
  stop.abort();
  await listening;
});

test.each([
  [
    'refuses to be listened to',
    ({ id }: Got, reply: Reply) =>
      reply.json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`, 404),
  ],
  [
    'has nothing to tell of what it was asked',
    (got: Got, reply: Reply) => {
      acknowledge(got, reply, {});
      reply.event(`{"jsonrpc":"2.0","id":${JSON.stringify(got.id)},"result":{}}`);
      reply.end();
    },
  ],
])('a server that %s is not asked again and again', async (_what, answer) => {
  const server = await startRawServer(answer);
  const world = await startBridge(server.url);
  const [session, stop] = [world.session(), new AbortController()];
  let ended = false;
  const listening = world.listen(session, () => {}, stop.signal).then(() => (ended = true));
  expect((await world.ask(session, subscribe('test://a'))).text).toBe(DONE);
  expect((await world.ask(session, subscribe('test://b'))).text).toBe(DONE);
  expect(ended).toBe(false);
  expect(server.got.length).toBeLessThanOrEqual(3);
  stop.abort();
  await listening;
});

test('the stream ends when the server ends its own', async () => {
  const server = await startRawServer((got, reply) => {
    acknowledge(got, reply);
    reply.event(`{"jsonrpc":"2.0","id":${JSON.stringify(got.id)},"result":{"resultType":"complete"}}`);
    reply.end();
  });
  const world = await startBridge(server.url);
  expect(await world.listen(world.session(), () => {}, new AbortController().signal)).toMatchObject({
    outcome: 'free',
    finishReason: 'closed',
  });
});

test('a stream that breaks before it stands is the failure of the provider', async () => {
  const server = await startRawServer((_got, reply) => void reply.raw.destroy());
  const world = await startBridge(server.url);
  await expect(world.listen(world.session(), () => {}, new AbortController().signal)).rejects.toMatchObject({
    code: 'provider_unavailable',
  });
});

test('subscriptions that the server does not offer, that name nothing, or are too many are refused', async () => {
  const bare = await startRawServer(() => {}, '{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{}}}');
  const none = await startBridge(bare.url);
  const code = (text: string | null) =>
    (JSON.parse(text!) as { readonly error?: { readonly code: number } }).error?.code;
  expect(code((await none.ask(none.session(), subscribe('test://a'))).text)).toBe(-32_601);
  const server = await startRawServer(() => {});
  const world = await startBridge(server.url);
  const session = world.session();
  expect(code((await world.ask(session, subscribe(1))).text)).toBe(-32_602);
  const long = 'x'.repeat(32 * 1024);
  expect(code((await world.ask(session, subscribe(`a${long.slice(1)}`))).text)).toBe(undefined);
  expect(code((await world.ask(session, subscribe(`b${long.slice(1)}`))).text)).toBe(undefined);
  expect(code((await world.ask(session, subscribe('c'))).text)).toBe(-32_602);
  expect(code((await world.ask(session, unsubscribe(`a${long.slice(1)}`))).text)).toBe(undefined);
  expect(code((await world.ask(session, subscribe('c'))).text)).toBe(undefined);
  expect(server.got).toEqual([]);
});
