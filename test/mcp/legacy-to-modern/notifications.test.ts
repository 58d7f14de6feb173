import { expect, onTestFinished, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startBridge } from './bridge-world.ts';
import { startRawServer, toolCall } from './raw-server.ts';

async function startFixture() {
  const fixture = await startMcpFixture({ eras: 'modern' });
  onTestFinished(() => fixture.close());
  return startBridge(fixture.url);
}

const setLevel = (level: unknown) => ({ id: 1, method: 'logging/setLevel', params: { level } });
const methods = (events: readonly string[]) =>
  events.map((event) => (JSON.parse(event) as { readonly method: string }).method);

test('log messages come from the level on that the client set for its session', async () => {
  const world = await startFixture();
  const [session, other] = [world.session(), world.session()];
  expect((await world.ask(session, toolCall('1', 'test_tool_with_logging'))).events).toEqual([]);
  expect((await world.ask(session, setLevel('info'))).text).toBe('{"jsonrpc":"2.0","id":1,"result":{}}');
  expect(methods((await world.ask(session, toolCall('1', 'test_tool_with_logging'))).events)).toEqual(
    Array(3).fill('notifications/message'),
  );
  expect((await world.ask(other, toolCall('1', 'test_tool_with_logging'))).events).toEqual([]);
  await world.ask(session, setLevel('error'));
  expect((await world.ask(session, toolCall('1', 'test_tool_with_logging'))).events).toEqual([]);
  expect(await world.faults()).toEqual([]);
});

test.each(['loud', 3, undefined])('the level %j is refused and changes nothing', async (level) => {
  const world = await startFixture();
  const session = world.session();
  expect(JSON.parse((await world.ask(session, setLevel(level))).text!)).toMatchObject({
    id: 1,
    error: { code: -32_602 },
  });
  expect(session.logLevel).toBe(null);
});

test('progress comes under the token that the client gave', async () => {
  const world = await startFixture();
  const { events } = await world.ask(
    world.session(),
    toolCall('1', 'test_tool_with_progress', ',"_meta":{"progressToken":"mine"}'),
  );
  expect(events.map((event) => (JSON.parse(event) as { params: unknown }).params)).toEqual(
    [0, 50, 100].map((progress) => expect.objectContaining({ progressToken: 'mine', progress, total: 100 }) as unknown),
  );
  expect(await world.faults()).toEqual([]);
});

test('notifications come as they are written, one by one as the server sends them', async () => {
  const note =
    '{"params":{"n":1.0,"z":{"b":1,"a":12345678901234567890}}, "method":"notifications/future","jsonrpc":"2.0"}';
  const heard = Promise.withResolvers<void>();
  const server = await startRawServer(async ({ id }, reply) => {
    reply.event(note);
    await heard.promise;
    reply.event(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[]}}`);
  });
  const world = await startBridge(server.url);
  const { events } = await world.ask(world.session(), toolCall('1'), { onEvent: () => heard.resolve() });
  expect(events).toEqual([note]);
  expect(await world.faults()).toEqual([]);
});

test('a client without an event stream is given the response alone', async () => {
  const world = await startFixture();
  const answer = await world.ask(
    world.session(),
    toolCall('1', 'test_tool_with_progress', ',"_meta":{"progressToken":1}'),
    { events: false },
  );
  expect(answer.events).toEqual([]);
  expect(answer.text).toContain('"Done"');
  expect(await world.faults()).toEqual([]);
});

test('a ping is answered without the server', async () => {
  const server = await startRawServer(() => {});
  const world = await startBridge(server.url);
  expect((await world.ask(world.session(), { id: 'p', method: 'ping' })).text).toBe(
    '{"jsonrpc":"2.0","id":"p","result":{}}',
  );
  expect(server.got).toEqual([]);
});
