import { once } from 'node:events';
import { createServer, request as requestOf, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startKeyAddingProxy } from '../support/key-adding-proxy.ts';
import { sendRaw } from '../support/raw-http.ts';

async function proxyTo(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await startKeyAddingProxy(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp/tool`,
    'the-key',
  );
  onTestFinished(async () => {
    await proxy.close();
    server.close();
    server.closeAllConnections();
  });
  return proxy;
}

test('a request arrives as it was sent, with the key', async () => {
  const proxy = await proxyTo((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () =>
      response
        .writeHead(418, { 'x-answer': 'yes' })
        .end(JSON.stringify([request.method, request.url, request.rawHeaders, body])),
    );
  });
  const { origin, pathname } = new URL(proxy.url);
  const head =
    'Host: evil.example.com\r\nOrigin: http://evil.example.com\r\nX-Twin: 1\r\nX-Twin: 2\r\nContent-Length: 4\r\n';
  const answer = await sendRaw(origin, `PUT ${pathname}?a=%20b HTTP/1.1\r\n${head}\r\nbody`);
  expect(answer).toMatchObject({ status: 418, headers: { 'x-answer': 'yes' } });
  const [method, url, rawHeaders, body] = JSON.parse(
    answer.body.slice(answer.body.indexOf('['), answer.body.lastIndexOf(']') + 1),
  ) as [string, string, string[], string];
  expect([method, url, body]).toEqual(['PUT', '/mcp/tool?a=%20b', 'body']);
  const pairs = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : []));
  expect(pairs).toEqual(expect.arrayContaining([...head.trim().split('\r\n'), 'authorization: Bearer the-key']));
  expect(rawHeaders.filter((name) => name.toLowerCase() === 'host')).toHaveLength(1);
});

test('a stream comes event by event, and ends behind the proxy when the client goes', async () => {
  const gone = Promise.withResolvers<void>();
  let next = () => {};
  const proxy = await proxyTo((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    next = () => response.write('data: 1\n\n');
    response.on('close', gone.resolve);
  });
  const request = requestOf(proxy.url).end();
  request.on('error', () => {});
  // Headers come before the first event, and the event before the end.
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.headers['content-type']).toBe('text/event-stream');
  next();
  const [bytes] = (await once(response, 'data')) as [Buffer];
  expect(bytes.toString()).toBe('data: 1\n\n');
  request.destroy();
  await gone.promise;
});

test('an upstream that breaks off breaks the client off', async () => {
  const proxy = await proxyTo((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.destroy());
  });
  const response = await fetch(proxy.url);
  await expect(response.text()).rejects.toThrow('terminated');
});
