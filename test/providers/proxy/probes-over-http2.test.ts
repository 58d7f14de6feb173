import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Agent } from 'undici';
import { skipInterimReplies } from '#wire/undici';
import { ask } from '../../../src/providers/proxy/probe/ask.ts';
import { SELF_SIGNED } from '../../support/self-signed.ts';

// Reverse proxies, content delivery networks and vendors offer HTTP/2 to whoever can speak it.

const server = createSecureServer({ ...SELF_SIGNED, allowHTTP1: true }, (request, response) => {
  response.end(`HTTP/${request.httpVersion}`);
});
const authorities = getCACertificates();
let url: string;
beforeAll(async () => {
  setDefaultCACertificates([...authorities, SELF_SIGNED.cert]);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://localhost:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => {
  setDefaultCACertificates(authorities);
  server.close();
});

test('a check of a server that offers HTTP/2 speaks HTTP/1.1', async () => {
  expect(await ask({ method: 'GET', url })).toMatchObject({ status: 200, text: 'HTTP/1.1' });
});

test('a connection that speaks HTTP/2 has no interim replies to skip', async () => {
  const dispatcher = skipInterimReplies(new Agent({ allowH2: true }));
  const { body } = await dispatcher.request({ origin: new URL(url).origin, path: '/', method: 'GET' });
  expect(await body.text()).toBe('HTTP/2.0');
  await dispatcher.destroy();
});
