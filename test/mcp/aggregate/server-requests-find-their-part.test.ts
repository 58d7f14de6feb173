import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events, type Asked } from '../sessions/scripted-server.ts';
import { call, messagesOf, startAggregateSpine, streamOf, type AggregateSpine } from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

/** A server that asks under this id before it answers a call, and tells what it was answered. */
async function asking(idText: string) {
  const open: { response: ServerResponse; id: unknown }[] = [];
  return startPartServer(({ message, text }: Asked, response) => {
    if (message.method === 'tools/call') {
      open.push({ response, id: message.id });
      events(
        response,
        `data: {"jsonrpc":"2.0", "id" : ${idText},"method":"elicitation/create","params":{"message":"who?","_meta":{"progressToken":${idText}}}}\n\n`,
      );
    } else if (message.method === undefined) {
      const { response: waiting, id } = open.shift()!;
      waiting.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })}\n\n`);
    }
  });
}

const answer = (id: unknown, who: string) => ({ jsonrpc: '2.0', id, result: { action: 'accept', content: { who } } });
const tell = async (spine: AggregateSpine, session: string, message: unknown) =>
  (await spine.send(message, session)).status;

test.each([
  ['0', '0'],
  ['"same"', '"same"'],
  ['12345678901234567890', '12345678901234567890'],
])('two servers that ask under the id %s at once are each answered under their own', async (one, other) => {
  const servers = { 'acme/one': await asking(one), 'acme/two': await asking(other) };
  const spine = await startAggregateSpine({ 'acme/one': servers['acme/one'].url, 'acme/two': servers['acme/two'].url });
  const session = await spine.initialize();
  const before = (await spine.balance()).available;
  const streams = await Promise.all(
    ['acme_one', 'acme_two'].map(async (prefix, i) => streamOf(await spine.send(call(i, `${prefix}__ask`), session))),
  );
  const asked = await Promise.all(streams.map((stream) => stream.next()));
  const [first, second] = asked.map(({ id }) => id);
  expect(typeof first).toBe('string');
  expect(first).not.toBe(second);
  // The second is answered first; its progress is told to it alone.
  const token = (asked[1]!['params'] as { _meta: { progressToken: unknown } })._meta.progressToken;
  expect(
    await tell(spine, session, {
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: token, progress: 1 },
    }),
  ).toBe(202);
  expect(await tell(spine, session, answer(second, 'two'))).toBe(202);
  expect(await tell(spine, session, answer(first, 'one'))).toBe(202);
  for (const [i, stream] of streams.entries()) {
    const { id, result } = (await stream.rest()).at(-1) as { id: number; result: { content: [{ text: string }] } };
    expect(id).toBe(i);
    const idText = [one, other][i]!;
    expect(result.content[0].text).toBe(
      `{"jsonrpc":"2.0","id":${idText},"result":{"action":"accept","content":{"who":"${['one', 'two'][i]}"}}}`,
    );
  }
  expect(servers['acme/one'].heard('notifications/progress')).toEqual([]);
  expect(servers['acme/two'].heard('notifications/progress')).toMatchObject([
    { text: expect.stringContaining(`"progressToken":${other}`) },
  ]);
  expect(before - (await spine.balance()).available).toBe(2_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a response to what nobody asked is taken and goes nowhere', async () => {
  const server = await asking('1');
  const spine = await startAggregateSpine({ 'acme/one': server.url, 'acme/two': server.url });
  const session = await spine.initialize();
  const stream = streamOf(await spine.send(call(1, 'acme_one__ask'), session));
  const { id } = await stream.next();
  for (const wrong of [
    7,
    '1',
    'acme/one',
    'acme/two 1',
    'nobody 1',
    ' 1',
    'acme/one x',
    'acme/one 1,"method":"ping"',
    'acme/one {}',
    'acme/one null',
  ])
    expect(await tell(spine, session, answer(wrong, 'x')), String(wrong)).toBe(202);
  expect(server.heard('response')).toEqual([]);
  expect(await tell(spine, session, answer(id, 'me'))).toBe(202);
  expect((await stream.rest()).at(-1)).toMatchObject({ id: 1, result: {} });
  expect(server.heard('response')).toHaveLength(1);
  expect(await spine.faults()).toEqual([]);
});

test('a client without an event stream is not asked, and the tool is told so', async () => {
  const server = await asking('1');
  const spine = await startAggregateSpine({ 'acme/one': server.url });
  const session = await spine.initialize();
  const [reply] = await messagesOf(await spine.send(call(1, 'acme_one__ask'), session, { accept: 'application/json' }));
  expect(JSON.stringify(reply)).toContain('-32601');
  expect(await spine.faults()).toEqual([]);
});

test('what a server takes back is taken back under the id that the client has', async () => {
  const server = await startPartServer(({ message }, response) => {
    if (message.method !== 'tools/call') return;
    events(response, 'data: {"jsonrpc":"2.0","id":5,"method":"roots/list"}\n\n').end(
      'data: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}\n\n' +
        `data: {"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":{"content":[]}}\n\n`,
    );
  });
  const spine = await startAggregateSpine({ 'acme/one': server.url });
  const session = await spine.initialize();
  const [asked, cancelled] = await messagesOf(await spine.send(call(1, 'acme_one__ask'), session));
  expect(asked).toMatchObject({ method: 'roots/list', id: expect.any(String) });
  expect(cancelled).toMatchObject({ method: 'notifications/cancelled', params: { requestId: asked!['id'] } });
  expect(await spine.faults()).toEqual([]);
});
