import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProxy, toolAt, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

const seen: { url: string; method: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
let upstream: Server;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;

/** Answers with the request's body, and with what its query asks for. */
beforeAll(async () => {
  upstream = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = request.url ?? '';
    seen.push({ url, method: request.method ?? '', headers: request.headers, body });
    const status = Number(new URL(url, 'http://x').searchParams.get('status') ?? 200);
    const known = url.includes('length') ? { 'content-length': body.length } : {};
    const headers = {
      ...known,
      'content-type': 'application/x-odd',
      'x-custom': 'a',
      'set-cookie': ['a=1', 'b=2'],
      'x-tollgate-failure': 'draining',
      'keep-alive': 'timeout=7',
    };
    response.writeHead(status, headers).end(body);
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  router = await startTunnelRouter();
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/base/v1`;
  running = runProxy({ url: router.url, services: [toolAt('mine/one', url, 'upstream-key-canary')] });
  end = await router.next();
  await end.accept();
});
afterAll(async () => {
  await running.proxy.close();
  await router.stop();
  upstream.closeAllConnections();
  upstream.close();
});

const PATH = '/tool/mine%2Fone';

describe('a forwarded call', () => {
  it.each([0, 1, 300, 65_536, 65_537, 3_000_000])('passes a body of %i bytes there and back as it is', async (size) => {
    const body = randomBytes(size);
    const reply = await end.call({ ':path': `${PATH}/echo?length=1`, 'content-length': size }, body);
    expect(reply.status).toBe(200);
    expect(reply.headers['content-length']).toBe(String(size));
    expect(Buffer.compare(reply.body, body)).toBe(0);
    expect(Buffer.compare(seen.at(-1)!.body, body)).toBe(0);
    expect(seen.at(-1)!.headers['content-length']).toBe(String(size));
  });

  it('passes a body of unknown length', async () => {
    const stream = end.open({ ':path': `${PATH}/echo` });
    const parts = Array.from({ length: 50 }, () => randomBytes(7_001));
    for (const part of parts) stream.write(part);
    stream.end();
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    expect(Buffer.compare(Buffer.concat(chunks), Buffer.concat(parts))).toBe(0);
  });

  it('keeps path, query and method', async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      await end.call({ ':path': `${PATH}/chat/completions?a=1&b=%20..`, ':method': method });
      expect(seen.at(-1)).toMatchObject({ url: '/base/v1/chat/completions?a=1&b=%20..', method });
    }
    await end.call({ ':path': PATH });
    expect(seen.at(-1)!.url).toBe('/base/v1');
  });

  it.each([200, 201, 204, 302, 404, 429, 500, 503])('keeps status %i', async (status) => {
    expect((await end.call({ ':path': `${PATH}/x?status=${status}` })).status).toBe(status);
  });

  it('shows the upstream its own key, and nothing that the caller showed to the gateway', async () => {
    const secrets = [
      'authorization',
      'cookie',
      'x-api-key',
      'sign-in-with-x',
      'x-siwx',
      'payment-signature',
      'x-tollgate-connection',
    ];
    await end.call({
      ':path': `${PATH}/x`,
      ...Object.fromEntries(secrets.map((name) => [name, 'Bearer of-the-caller'])),
      'x-request-id': 'r1',
      accept: '*/*',
    });
    const { headers } = seen.at(-1)!;
    expect(headers.authorization).toBe('Bearer upstream-key-canary');
    expect(headers).toMatchObject({ 'x-request-id': 'r1', accept: '*/*' });
    expect(JSON.stringify(headers)).not.toContain('of-the-caller');
  });

  it('keeps headers of the reply but those of one connection and our own', async () => {
    const { headers } = await end.call({ ':path': `${PATH}/x` });
    expect(headers).toMatchObject({
      'content-type': 'application/x-odd',
      'x-custom': 'a',
      'set-cookie': ['a=1', 'b=2'],
    });
    for (const name of ['x-tollgate-failure', 'keep-alive', 'connection', 'transfer-encoding'])
      expect(headers).not.toHaveProperty(name);
  });

  it('passes on nothing by which a gateway could choose another path, method, client or account at the upstream', async () => {
    const names = [
      'x-original-url',
      'x-rewrite-url',
      'x-http-method-override',
      'x-forwarded-for',
      'forwarded',
      'openai-organization',
    ];
    await end.call({ ':path': `${PATH}/x`, ...Object.fromEntries(names.map((name) => [name, 'of-the-gateway'])) });
    expect(JSON.stringify(seen.at(-1)!.headers)).not.toContain('of-the-gateway');
  });

  it.each(['TRACE', 'PUT', 'OPTIONS', 'PROPFIND'])('does not ask with %s', async (method) => {
    const before = seen.length;
    expect((await end.call({ ':path': `${PATH}/x`, ':method': method })).status).toBe(404);
    expect(seen.length).toBe(before);
  });

  it.each([
    '/../admin',
    '/..',
    '/v1/%2e%2E/admin',
    '/x/..%2fadmin',
    '\\..\\admin',
    '/./x',
    'x',
    '/..;/admin',
    '/.;/../admin',
    '/..%3b/admin',
    '/%2e%2e;x/admin',
    '/..%00/admin',
    '/x/..#',
    '/%252e%252e/admin',
    '/x%252f..%252fadmin',
  ])('does not leave the address on offer by %s', async (rest) => {
    const before = seen.length;
    const reply = await end.call({ ':path': `${PATH}${rest}` });
    expect(reply.status).toBe(404);
    expect(reply.headers['x-tollgate-failure']).toBe('unknown_service');
    expect(seen.length).toBe(before);
  });

  it('answers for a service that it does not have', async () => {
    for (const path of ['/tool/other', '/model/mine%2Fone', '/nonsense', '/model/%zz']) {
      const reply = await end.call({ ':path': path });
      expect(reply.status).toBe(404);
      expect(reply.headers['x-tollgate-failure']).toBe('unknown_service');
    }
  });
});
