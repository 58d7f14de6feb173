import { createHash } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { registrationText } from '../../../src/gateway/network/tunnel-wire.ts';
import { createWallet, type Wallet } from '../../../src/providers/proxy/wallet/wallet.ts';
import { agentAt, modelAt, runProxy, toolAt, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type TunnelRouter, type TunnelRouterOptions } from '../../support/tunnel-router.ts';

let router: TunnelRouter;
let running: RunningProxy;
afterEach(async () => {
  running.proxy.kill();
  await router.stop();
});

const services = [
  modelAt('mine/one', 'http://127.0.0.1:9/v1'),
  toolAt('mine/search', 'http://127.0.0.1:9/mcp', 'tool-key-canary'),
  agentAt('mine/agent', 'http://127.0.0.1:9'),
];

async function start(wallet: Wallet | null, options: TunnelRouterOptions = {}): Promise<void> {
  router = await startTunnelRouter(options);
  running = runProxy({ url: router.url, services, options: { wallet } });
}

/** The sign-in of a dial, taken apart. */
function signIn(header: unknown): { message: string; signature: string } {
  return JSON.parse(Buffer.from(String(header), 'base64').toString()) as { message: string; signature: string };
}

it.each(['solana', 'evm'] as const)(
  'signed by a wallet of %s, for this router, this connection and this document',
  async (chain) => {
    const { wallet } = await createWallet(chain);
    await start(wallet);
    const end = await router.next();
    const { document, signature, router: domain } = await end.accept(wallet.providerId);
    const digest = createHash('sha256').update(document).digest('hex');
    const host = `127.0.0.1:${router.port}`;
    expect(domain).toBe(host);
    expect(signature).toBe(
      await wallet.sign(
        registrationText({ router: host, provider: wallet.providerId, challenge: 'challenge', digest }),
      ),
    );
    const offered = JSON.parse(document) as Record<string, { name: string }[]>;
    expect(offered).toMatchObject({
      version: 1,
      models: [{ name: 'mine/one' }],
      tools: [{ name: 'mine/search' }],
      agents: [{ name: 'mine/agent' }],
    });
    expect(document).not.toMatch(/canary|127\.0\.0\.1/);
  },
);

it('signs in anew with each dial, for the router alone and for a short time', async () => {
  const { wallet } = await createWallet('solana');
  await start(wallet);
  const first = await router.next();
  await first.accept(wallet.providerId);
  first.socket.terminate();
  await router.next();
  const [before, after] = router.dials.map(({ headers }) => signIn(headers['sign-in-with-x']).message);
  expect(before).not.toBe(after);
  expect(after).toContain(`127.0.0.1:${router.port} wants you to sign in`);
  expect(after).toContain(wallet.address);
  const time = (name: string) => Date.parse(new RegExp(`${name}: (.+)`).exec(after!)![1]!);
  expect(time('Expiration Time') - time('Issued At')).toBeLessThanOrEqual(300_000);
  expect(router.dials[1]!.headers).not.toHaveProperty('authorization');
});

it('with an API key, unsigned', async () => {
  await start(null);
  const end = await router.next();
  expect((await end.accept()).signature).toBeNull();
  expect(router.dials[0]!.headers.authorization).toBe('Bearer the-api-key-of-the-provider');
});

it('at a router that lives below a path', async () => {
  await start(null, { prefix: '/below/this' });
  await (await router.next()).accept();
  expect(router.dials[0]!.url).toBe('/below/this/api/v1/provider/tunnel');
});

it('and says so: the connection, each service, readiness', async () => {
  await start(null);
  await (await router.next()).accept('prov');
  expect(await running.logged('connected to the router')).toMatchObject({
    provider: 'prov',
    account: 'account-of-prov',
    router_version: '1.2.3',
  });
  for (const { service } of services)
    expect(await running.logged('registered')).toMatchObject({ service: service.name, primitive: service.primitive });
  expect(await running.logged('ready: calls can come')).toMatchObject({ router: router.url, services: 3 });
});

it('signs nothing for another provider', async () => {
  const { wallet } = await createWallet('solana');
  await start(wallet);
  const end = await router.next();
  end.say({ type: 'welcome', provider: 'somebody-else', account: 'a', challenge: 'c', version: '1' });
  await end.closed;
  expect((await running.logged('no connection to the router'))['why']).toContain('another provider');
});
