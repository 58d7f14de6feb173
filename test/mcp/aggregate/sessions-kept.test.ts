import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { json, type Asked } from '../sessions/scripted-server.ts';
import type { ServerResponse } from 'node:http';
import { call, messagesOf, startAggregateSpine, until } from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

const answering = ({ message, session }: Asked, response: ServerResponse) => {
  if (message.method === 'tools/call')
    json(response, { jsonrpc: '2.0', id: message.id, result: { content: [{ type: 'text', text: session }] } });
};
interface Answered {
  readonly result: {
    readonly content: readonly [{ readonly text: string }];
    readonly tools: readonly { readonly name: string }[];
  };
  readonly error?: { readonly code: number; readonly message: string };
}
const resultOf = async (reply: Promise<Response>) => (await messagesOf(await reply))[0] as unknown as Answered;
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

async function dataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-aggregate-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('a session and its parts go on after a restart, for its account alone, and end with DELETE', async () => {
  const server = await startPartServer(answering);
  const dataDir = await dataDirectory();
  const services = { 'acme/one': server.url, 'acme/two': server.url };
  const first = await startAggregateSpine(services, { dataDir });
  const session = await first.initialize({ url: `${first.mcp}?services=acme/one` });
  const one = (await resultOf(first.send(call(1, 'acme_one__ask'), session))).result.content[0].text;
  await first.stop();

  const second = await startAggregateSpine(services, { dataDir });
  expect((await resultOf(second.send(call(2, 'acme_one__ask'), session))).result.content[0].text).toBe(one);
  // What its address selected is kept with it.
  expect((await resultOf(second.send(LIST, session))).result.tools.map(({ name }) => name)).toEqual(['acme_one__ask']);
  expect((await resultOf(second.send(call(3, 'acme_two__ask'), session))).error).toMatchObject({ code: -32602 });

  const stranger = await second.tenant('stranger', '1');
  expect((await second.send(LIST, session, { key: stranger.key })).status).toBe(404);
  // Nor is it a session with one service, or the other way round.
  expect((await second.send(LIST, session, { url: `${second.mcp}/acme/one` })).status).toBe(404);

  expect(server.open).toContain(one);
  const end = (key: string) =>
    fetch(second.mcp, { method: 'DELETE', headers: { authorization: `Bearer ${key}`, 'mcp-session-id': session } });
  expect((await end(stranger.key)).status).toBe(404);
  expect((await end(second.key)).status).toBe(204);
  expect(server.open).not.toContain(one);
  expect((await second.send(LIST, session)).status).toBe(404);
  expect((await end(second.key)).status).toBe(404);
  expect(await second.faults()).toEqual([]);
});

test('sessions share no part, and requests that come at once open one', async () => {
  const server = await startPartServer(answering);
  const spine = await startAggregateSpine({ 'acme/one': server.url });
  const [alice, bob] = [await spine.initialize(), await spine.initialize()];
  const ask = async (session: string, id: number) =>
    (await resultOf(spine.send(call(id, 'acme_one__ask'), session))).result.content[0].text;
  const [a, b] = await Promise.all([alice, bob].map((session) => Promise.all([1, 2, 3].map((id) => ask(session, id)))));
  expect(new Set(a).size).toBe(1);
  expect(new Set(b).size).toBe(1);
  expect(a![0]).not.toBe(b![0]);
  expect(server.heard('notifications/initialized').filter(({ session }) => session === a![0])).toHaveLength(1);
  expect(await spine.faults()).toEqual([]);
});

test('the level that was set is told to a part that is opened later, and a part that its server lost goes on', async () => {
  const server = await startPartServer(answering);
  const spine = await startAggregateSpine({ 'acme/one': server.url });
  const session = await spine.initialize();
  expect(
    (
      await resultOf(
        spine.send({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'warning' } }, session),
      )
    ).result,
  ).toEqual({});
  const ask = async (id: number) =>
    (await resultOf(spine.send(call(id, 'acme_one__ask'), session))).result.content[0].text;
  const first = await ask(2);
  expect(server.heard('logging/setLevel')).toMatchObject([
    { session: first, message: { params: { level: 'warning' } } },
  ]);
  server.open.clear();
  expect(await ask(3)).not.toBe(first);
  expect(await spine.faults()).toEqual([]);
});

test('a session whose time is over ends with its parts', async () => {
  const clock = { ahead: 0 };
  const server = await startPartServer(answering);
  const spine = await startAggregateSpine({ 'acme/one': server.url }, { now: () => Date.now() + clock.ahead });
  const session = await spine.initialize();
  const part = (await resultOf(spine.send(call(1, 'acme_one__ask'), session))).result.content[0].text;
  expect(server.open).toContain(part);
  clock.ahead = 24 * 3_600_000;
  await until(() => !server.open.has(part));
  expect((await spine.send(LIST, session)).status).toBe(404);
});

test('an account has as many sessions as it may, and the oldest that nobody uses makes room', async () => {
  const clock = { ahead: 0 };
  const server = await startPartServer(answering);
  const spine = await startAggregateSpine(
    { 'acme/one': server.url },
    { toml: '[mcp]\nsessions_max = 2\n', now: () => Date.now() + clock.ahead },
  );
  const first = await spine.initialize();
  await spine.initialize();
  await expect(spine.initialize()).rejects.toThrow(/429.*2 sessions/);
  clock.ahead = 5 * 60_000;
  await spine.initialize();
  expect((await spine.send(LIST, first)).status).toBe(404);
});

test('what is not there is refused in the words of the era', async () => {
  const server = await startPartServer(answering);
  const spine = await startAggregateSpine({ 'acme/one': server.url });
  const session = await spine.initialize();
  const ask = (id: number, method: string, params: object = {}) =>
    resultOf(spine.send({ jsonrpc: '2.0', id, method, params }, session));
  expect((await ask(1, 'resources/read', { uri: 'nowhere+file:///a' })).error?.code).toBe(-32002);
  expect((await ask(2, 'tools/call', { name: 'acme_one__aks' })).error).toMatchObject({
    code: -32602,
    message: expect.stringContaining('acme_one__ask'),
  });
  expect((await ask(3, 'tasks/list')).error?.code).toBe(-32601);
  expect((await ask(4, 'logging/setLevel', { level: 'loud' })).error?.code).toBe(-32602);
  expect((await ask(5, 'tools/list', { cursor: 'x' })).error?.code).toBe(-32602);
  expect((await ask(6, 'ping')).result).toEqual({});
  expect(server.heard('tools/call')).toEqual([]);
});
