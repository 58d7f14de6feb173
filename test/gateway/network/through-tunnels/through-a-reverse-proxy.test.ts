import { once } from 'node:events';
import { createServer, request as ask, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { createLog } from '../../../../src/providers/proxy/log.ts';
import { providerChecks, runChecks } from '../../../../src/providers/proxy/probe/checks.ts';
import { loadProviderFile } from '../../../../src/providers/proxy/provider-file.ts';
import { dialIn, offeredModel } from '../../../support/dial-in.ts';
import { UNHURRIED } from '../../../support/spine.ts';
import { spineOfFile } from '../../../support/of-file.ts';

// A reverse proxy that drops what a tunnel or MCP needs is found by `--validate`, and named by whoever meets it.

let proxy: Server | null = null;
const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(() => {
  proxy?.closeAllConnections();
  proxy?.close();
});

type Rewrite = (headers: IncomingHttpHeaders) => IncomingHttpHeaders;

/** A reverse proxy before the gateway. `rewrite` says what it passes on. */
async function startProxy(rewrite: Rewrite): Promise<string> {
  const { port } = new URL(spine.origin);
  const forward = ({ method, url, headers }: IncomingMessage) =>
    ask({ host: '127.0.0.1', port, method: method!, path: url!, headers: rewrite(headers), agent: false });
  proxy = createServer((incoming, outgoing) => {
    const onward = forward(incoming).on('response', (response) => {
      outgoing.writeHead(response.statusCode!, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  proxy.on('upgrade', (incoming: IncomingMessage, wire: Duplex) => {
    const onward = forward(incoming).on('response', (response) => {
      wire.write(`HTTP/1.1 ${response.statusCode} No\r\nconnection: close\r\n\r\n`);
      response.pipe(wire);
    });
    onward.on('upgrade', (response, far) => {
      const lines = Object.entries(response.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      wire.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
      far.pipe(wire).on('error', () => far.destroy());
      wire.pipe(far).on('error', () => wire.destroy());
    });
    onward.end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

const without =
  (...names: readonly string[]): Rewrite =>
  (headers) => ({
    ...Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name))),
    connection: headers.connection ?? '',
  });
const WAYS: Record<string, { readonly rewrite: Rewrite; readonly says: RegExp }> = {
  'drops Upgrade and Connection': {
    rewrite: (headers) => ({ ...without('upgrade')(headers), connection: 'close' }),
    says: /^a WebSocket is refused with status 426: Something between client and gateway dropped the Upgrade header .*\(nginx: proxy_http_version 1\.1; proxy_set_header Upgrade/,
  },
  'drops Connection alone': {
    rewrite: (headers) => ({ ...headers, connection: 'close' }),
    says: /^a WebSocket is refused with status 426: Something between client and gateway dropped the Connection header/,
  },
  'replaces Host': {
    rewrite: (headers) => ({ ...headers, host: 'gates' }),
    says: /^a WebSocket reaches the router, but requests of its clients will not: The host "gates" is not one of this gateway's\. A reverse proxy before it has to pass the client's Host on .*server\.allowed_hosts$/,
  },
};

async function tunnelResult(router: string) {
  const text = `[router]\nurl = "${router}"\napi_key = "${spine.key}"\n${offeredModel({ url: spine.provider.url })}`;
  const config = loadProviderFile({ file: 'provider.toml', text, env: { TEST_UPSTREAM_KEY: 'k' } });
  const log = createLog({ level: 'silent', style: 'json', secrets: [], write() {}, now: Date.now });
  const found: Record<string, string> = {};
  const checks = providerChecks(config, null, { env: {}, version: '1', log }, Date.now);
  const ok = await runChecks(checks, Date.now, ({ kind }, { detail }) => (found[kind] = detail));
  return { ok, found };
}

test('one that passes everything on is found to be well', async () => {
  const { ok, found } = await tunnelResult(await startProxy((headers) => headers));
  expect([ok, found['tunnel']]).toEqual([true, 'a WebSocket gets through']);
});

test.each(Object.entries(WAYS))('one that %s is told of by --validate', async (_way, { rewrite, says }) => {
  const { ok, found } = await tunnelResult(await startProxy(rewrite));
  expect(ok).toBe(false);
  expect(found['router']).toMatch(/^answers, and accepts the API key\. This gateway pays over no chain/);
  expect(found['tunnel']).toMatch(says);
});

test('a proxy that dials through one that drops Upgrade is told so', async () => {
  const router = await startProxy(WAYS['drops Upgrade and Connection']!.rewrite);
  const dialled = await dialIn({
    router,
    apiKey: spine.key,
    services: offeredModel({ url: spine.provider.url }),
    ready: false,
  });
  const line = await dialled.logged("a proxy between this machine and the router doesn't forward WebSockets");
  expect(line).toMatchObject({ status: 426, message: expect.stringMatching(/dropped the Upgrade header/) as string });
  dialled.kill();
});
