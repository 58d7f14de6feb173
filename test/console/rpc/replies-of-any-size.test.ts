import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { createHttpSink } from '#http';
import { createAsk, type Behalf } from '../../../src/console/rpc/inner-request.ts';
import { AGENT, message, request, useRpcWorld } from './rpc-world.ts';

// Routes write past Fastify, straight to the socket, which here is none.

const world = useRpcWorld();
const MIB = 1024 * 1024;
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const behalf = (gone = new AbortController().signal): Behalf => ({
  carried: {},
  peer: '127.0.0.9',
  requestId: 'r',
  gone,
});

test('7 MiB of an agent, alone and in a batch', async () => {
  const entry = () => request(1, 'message/send', { agent: AGENT, message: message(`big ${7 * MIB}`) });
  const one = await (await world.post(entry())).text();
  expect(one.length).toBeGreaterThan(7 * MIB);
  expect(JSON.parse(one)).toMatchObject({ id: 1, result: { kind: 'task', status: { state: 'completed' } } });
  const replies = await world.batch([entry(), request(2, 'ping')]);
  expect(replies).toMatchObject([
    { id: 1, result: { kind: 'task' } },
    { id: 2, result: 'pong' },
  ]);
});

test('a door that writes by pieces, waits for what drains, and ends: the whole reply, and no timer is left', async () => {
  const server = Fastify();
  const piece = Buffer.alloc(64 * 1024, 'x');
  const seen: string[] = [];
  server.post('/pieces', async (asked, reply) => {
    seen.push(asked.ip);
    const sink = createHttpSink(
      reply,
      60_000,
      () => seen.push('gone'),
      () => ({}),
    );
    sink.head(200, { 'content-type': 'application/json' });
    sink.flush();
    for (let count = 0; count < 160; count += 1) if (!sink.write(piece)) await sink.drained();
    sink.end(Buffer.from('"end"'));
  });
  await server.ready();
  const ask = createAsk(server.inject.bind(server));
  const before = timers();
  for (let round = 0; round < 2; round += 1) {
    const { status, text } = await ask({ verb: 'POST', path: '/pieces', body: '{}' }, behalf());
    expect(status).toBe(200);
    expect(text.length).toBe(160 * 64 * 1024 + 5);
    expect(text.endsWith('"end"')).toBe(true);
  }
  await expect.poll(timers).toBeLessThanOrEqual(before);
  expect(new Set(seen)).toEqual(new Set(['127.0.0.9']));
  await server.close();
});

test.each(['POST', 'GET'] as const)(
  'a door learns that the client left, after it has read the body as well (%s)',
  async (verb) => {
    const server = Fastify();
    let began = () => {};
    const begun = new Promise<void>((resolve) => (began = resolve));
    const left = new Promise<string>((resolve) => {
      server.route({
        method: verb,
        url: '/waits',
        async handler(_request, reply) {
          const sink = createHttpSink(
            reply,
            60_000,
            () => resolve('left'),
            () => ({}),
          );
          began();
          await left;
          expect(sink.closed).toBe(true);
          // What is written now arrives nowhere, and harms nobody.
          sink.head(200, {});
          sink.end(Buffer.from('late'));
        },
      });
    });
    await server.ready();
    const leaving = new AbortController();
    const answer = createAsk(server.inject.bind(server))(
      { verb, path: '/waits', ...(verb === 'POST' ? { body: '{}' } : {}) },
      behalf(leaving.signal),
    );
    const rejected = answer.catch((error: unknown) => error);
    await begun;
    leaving.abort(new Error('bye'));
    expect(await rejected).toMatchObject({ message: 'bye' });
    expect(await left).toBe('left');
    await server.close();
  },
);

test('a server that closes: the entry may be sent again', async () => {
  const server = Fastify();
  server.get('/x', () => 'x');
  await server.ready();
  await server.close();
  await expect(createAsk(server.inject.bind(server))({ verb: 'GET', path: '/x' }, behalf())).rejects.toMatchObject({
    code: 'service_unavailable',
    retryAfterS: 1,
  });
});
