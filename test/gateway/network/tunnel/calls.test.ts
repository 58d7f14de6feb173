import { expect, test } from 'vitest';
import { bodyOf } from '../../../support/tunnel-peer.ts';
import { startWorld, textOf } from './tunnel-world.ts';

test('a call goes to the proxy as it is, and its reply comes back as it is', async () => {
  const world = await startWorld();
  const seen: { headers: Record<string, unknown>; body: string }[] = [];
  const peer = await world.peer({
    async serve(stream, headers) {
      seen.push({ headers: { ...headers }, body: await bodyOf(stream) });
      stream.respond({ ':status': 418, 'content-type': 'text/plain', 'x-of-upstream': ['a', 'b'] });
      stream.write('short and ');
      stream.end('stout');
    },
  });
  const { reply, text } = await textOf(
    world.send(peer.welcome.provider, {
      headers: { 'content-type': 'application/json', connection: 'keep-alive', traceparent: '00-1' },
      body: '{"ü":1}',
    }),
  );
  expect(reply.status).toBe(418);
  expect(text).toBe('short and stout');
  expect(reply.headers['content-type']).toBe('text/plain');
  expect(reply.headers['x-of-upstream']).toBe('a, b');
  expect(Object.keys(reply.headers).filter((name) => name.startsWith(':'))).toEqual([]);
  const [{ headers, body } = { headers: {}, body: '' }] = seen;
  expect(body).toBe('{"ü":1}');
  expect(headers).toMatchObject({
    ':method': 'POST',
    ':path': '/model/peer%2Fmodel/chat/completions',
    'content-type': 'application/json',
    'content-length': '8',
    traceparent: '00-1',
  });
  expect(headers).not.toHaveProperty('connection');
  expect(world.tunnels.count()).toEqual({ connections: 1, streams: 0 });
});

test('a request without a body, and a reply without one', async () => {
  const world = await startWorld();
  const peer = await world.peer({
    serve(stream, headers) {
      expect(headers[':method']).toBe('GET');
      stream.respond({ ':status': 204 }, { endStream: true });
    },
  });
  const { reply, text } = await textOf(
    world.send(peer.welcome.provider, { method: 'GET', path: '/.well-known/agent.json', body: null }),
  );
  expect([reply.status, text]).toEqual([204, '']);
});
