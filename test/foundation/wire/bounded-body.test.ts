import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchText } from '../../../src/foundation/wire/bounded-body.ts';

let server: Server;
let base: string;
let asked: { readonly method: string | undefined; readonly type: string | undefined; readonly body: string };
let authorization: string | undefined;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) body += chunk;
    authorization = request.headers.authorization;
    asked = { method: request.method, type: request.headers['content-type'], body };
    if (request.url === '/moved') response.writeHead(302, { location: '/' }).end();
    else response.writeHead(request.url === '/refused' ? 403 : 200).end('0123456789');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const fetchWithin = (path: string, bytesMax = 10, more: { body?: unknown; tooLong?: () => Error } = {}) =>
  fetchText(base + path, { bytesMax, signal: AbortSignal.timeout(30_000), ...more });

test('an answer of any status is given whole up to the bound', async () => {
  expect(await fetchWithin('/')).toEqual({ status: 200, text: '0123456789' });
  expect(await fetchWithin('/refused')).toEqual({ status: 403, text: '0123456789' });
  expect(asked).toEqual({ method: 'GET', type: undefined, body: '' });
});

test('a body is posted as JSON', async () => {
  await fetchWithin('/', 10, { body: { a: 1 } });
  expect(asked).toEqual({ method: 'POST', type: 'application/json', body: '{"a":1}' });
});

test.each([
  ['me:p%40ss', 'me:p@ss'],
  ['me', 'me:'],
  [':p%C3%A4ss', ':päss'],
])('the credentials %s of an address are sent as a header', async (written, credentials) => {
  const url = base.replace('//', `//${written}@`);
  expect((await fetchText(url, { bytesMax: 10, signal: AbortSignal.timeout(30_000) })).status).toBe(200);
  expect(authorization).toBe(`Basic ${Buffer.from(credentials).toString('base64')}`);
});

test('a longer answer is an error, in the words of the caller where it has some', async () => {
  await expect(fetchWithin('/', 9)).rejects.toThrow('answers with more than 9 bytes');
  await expect(fetchWithin('/', 9, { tooLong: () => new Error('too long for a chain') })).rejects.toThrow(
    'too long for a chain',
  );
});

test('redirects are not followed', async () => {
  await expect(fetchWithin('/moved')).rejects.toThrow();
});
