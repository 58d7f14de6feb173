import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events } from '../sessions/scripted-server.ts';
import { call, listenTo, messagesOf, startAggregateSpine, until } from './aggregate-spine.ts';
import { startPartServer } from './part-server.ts';

test('a stream that broke is gone on with, though another server gives its events the same ids', async () => {
  const waiting = new Map<string, { response: ServerResponse; id: unknown }>();
  const start = (name: string) =>
    startPartServer(({ message }, response) => {
      if (message.method !== 'tools/call') return;
      const progress = {
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'info', data: `id: of ${name}\u2028id: 3` },
      };
      waiting.set(name, {
        response: events(response, `id: 1\r\ndata: ${JSON.stringify(progress)}\r\n\r\n`),
        id: message.id,
      });
    });
  const [one, two] = [await start('one'), await start('two')];
  const spine = await startAggregateSpine({ 'acme/one': one.url, 'acme/two': two.url });
  const session = await spine.initialize();
  const before = (await spine.balance()).available;
  const ids: string[] = [];
  for (const [i, name] of ['one', 'two'].entries()) {
    const reply = await spine.send(call(i, `acme--${name}__ask`), session);
    const reader = reply.body!.getReader();
    let text = '';
    while (!/\n\r?\n/.test(text)) text += Buffer.from((await reader.read()).value ?? []).toString();
    ids.push(/^id: (.*?)\r?$/m.exec(text)![1]!);
    expect(text).toContain(`"data":"id: of ${name}\u2028id: 3"`);
    await reader.cancel();
  }
  expect(new Set(ids).size).toBe(2);
  for (const [i, name] of ['one', 'two'].entries()) {
    const resumed = listenTo(spine, session, { 'last-event-id': ids[i]! });
    const { response, id } = waiting.get(name)!;
    response.end(
      `id: 2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: name }] } })}\n\n`,
    );
    expect(await messagesOf(await resumed)).toMatchObject([{ id: i, result: { content: [{ text: name }] } }]);
  }
  await spine.quiet();
  expect(before - (await spine.balance()).available).toBe(2_000n);
  expect(await spine.faults()).toEqual([]);
  // An id that nobody gave out is no reason to refuse a stream.
  const fresh = await listenTo(spine, session, { 'last-event-id': 'unknown' });
  expect(fresh.status).toBe(200);
  await until(() => one.streams.size === 1);
  await fresh.body!.cancel();
});
