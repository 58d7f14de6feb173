import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { createLog } from '../../../src/providers/proxy/log.ts';
import { secretsOf } from '../../../src/providers/proxy/provider-file.ts';
import { createProxy, type Proxy } from '../../../src/providers/proxy/proxy.ts';
import { createWallet } from '../../../src/providers/proxy/wallet/wallet.ts';
import { modelAt, toolOfScript } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type TunnelRouter } from '../../support/tunnel-router.ts';

const SCRIPT = fileURLToPath(new URL('../../support/stdio-mcp-server.ts', import.meta.url));
const CANARIES = {
  api: 'router-api-key-canary',
  wallet: 'wallet-private-key-canary',
  upstream: 'upstream-key-canary',
  env: 'tool-env-canary',
};

let router: TunnelRouter;
let proxy: Proxy;
let upstream: Server;
afterEach(async () => {
  proxy.kill();
  await router.stop();
  upstream.closeAllConnections();
  upstream.close();
});

/**
 * Everything that the proxy can be brought to log, with a router, an upstream and a tool that repeat what they were
 * told in confidence.
 */
it.each(['json', 'text'] as const)('of style %s: no key, no credential, no body, whatever fails', async (style) => {
  const { wallet } = await createWallet('solana');
  upstream = createServer((request, response) => response.socket?.end(`${request.headers.authorization}\r\n\r\n`));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  let dials = 0;
  router = await startTunnelRouter({
    reject: ({ headers }) =>
      ++dials === 1
        ? {
            status: 503,
            body: JSON.stringify({ error: { message: `you sent ${headers['sign-in-with-x']} and ${CANARIES.api}` } }),
          }
        : null,
  });
  const config = {
    file: null,
    router: {
      url: router.url,
      domain: new URL(router.url).host,
      wallet: { chainId: wallet.chainId, privateKey: CANARIES.wallet },
      apiKey: CANARIES.api,
    },
    services: [
      modelAt('m', `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`, CANARIES.upstream),
      toolOfScript('t', SCRIPT, [], { KEY: CANARIES.env }, { shared: true }),
    ],
    providers: [],
    packages: { wall: 'if_available' as const },
  };
  let text = '';
  const logged = new EventTarget();
  const log = createLog({
    level: 'debug',
    style,
    secrets: secretsOf(config),
    write(line) {
      text += line;
      logged.dispatchEvent(new Event('line'));
    },
    now: Date.now,
  });
  const says = async (what: string) => {
    while (!text.includes(what)) await once(logged, 'line');
  };
  proxy = createProxy({ config, wallet, log, now: Date.now, random: () => 0, env: { PATH: process.env['PATH'] } });
  proxy.start();
  const end = await router.next();
  await end.accept(wallet.providerId);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'env', arguments: { prompt: 'body-canary' } },
  });
  await end.call({ ':path': '/model/m/chat/completions', authorization: 'Bearer caller-canary' }, 'body-canary');
  await end.call({ ':path': '/tool/t' }, body);
  await end.call({ ':path': '/tool/t' }, body.replace('env', 'noise'));
  await end.call({ ':path': '/tool/t' }, body.replace('env', 'crash'));
  await says('exited with code 9');
  await says('the upstream failed');
  const problems = [{ key: 'models[0].name', wrong: `the key is ${CANARIES.upstream}\u001b[2J`, right: CANARIES.env }];
  end.say({ type: 'refused', message: CANARIES.wallet, problems });
  await proxy.closed;
  expect(text).toContain('the router refused');
  expect(text).not.toContain('\u001b');
  expect(text).not.toMatch(/canary/);
  for (const { headers } of router.dials) expect(text).not.toContain(String(headers['sign-in-with-x']).slice(10, 60));
});
