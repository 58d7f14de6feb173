import { expect, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { MODEL, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { solanaWallet, type TestWallet } from '../../../support/wallets.ts';
import { askTunnel, readStream, startTunnelSpine, until } from '../../../support/tunnel-spine.ts';

// The operator bans a wallet: its services are gone at once, what runs ends and is paid, and it stays out.

test('a banned provider is gone at once, its running call ends and is paid, and it cannot come back', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const bad = await world.supply('Bad');
  const admin = administrator(spine, '/providers');
  const at = `/${encodeURIComponent(bad.proxy.wallet.accountId)}`;

  const running = await readStream(
    spine.post('/chat/completions', askTunnel('!tokens:20 !stall:900:1500', { stream: true })),
  );
  await running.tokens(1);
  expect((await admin('POST', `${at}/ban`, { reason: 'sells another model' })).data).toMatchObject({
    provider: bad.proxy.id,
    banned: true,
  });
  expect(await world.endpoints()).toBeNull();
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(404);
  expect(await running.end).toMatch(/\[DONE\]/);
  expect(await spine.generation(running.response.headers.get('x-generation-id'))).toMatchObject({ state: 'settled' });

  expect(await bad.proxy.closed).toBe(2);
  expect(
    await bad.proxy.logged('the operator of this router has banned this provider; running calls may finish'),
  ).toMatchObject({ reason: 'sells another model' });
  expect(bad.proxy.lines.some(({ msg }) => String(msg).includes('shutting down'))).toBe(false);
  const again = await world.dialIn({
    wallet: bad.proxy.wallet,
    services: offeredModel({ url: bad.upstream.url, provider: 'Bad' }),
    ready: false,
  });
  expect(await again.closed).toBe(2);
  const why = `The operator of this gateway has banned provider ${bad.proxy.id}: sells another model. What it earned stays on its account`;
  expect(await again.logged('this provider may not connect here')).toMatchObject({ status: 403, message: why });

  const ownPage = () => world.ownPage('/services', bad.proxy.wallet);
  expect(await ownPage()).toMatchObject({ connected: false, banned_because: 'sells another model' });
  const [entry] = (await admin('GET', '')).data;
  expect(entry).toMatchObject({
    provider: bad.proxy.id,
    name: 'Bad',
    connected: false,
    banned: { reason: 'sells another model' },
  });
  expect(entry!['earnings_micro_usdc']).toBeGreaterThan(0);
  const payout = { amount_micro_usdc: entry!['earnings_micro_usdc'], reference: 'last payment' };
  expect((await admin('POST', `${at}/payouts`, payout)).data).toMatchObject({ earnings_micro_usdc: 0 });
  expect((await admin('GET', `${at}/payouts`)).data).toMatchObject([{ reference: 'last payment', undone_at: null }]);

  const [own] = (await world.endpoints(MODEL))!;
  const refusal = await admin('POST', `/${own!.provider_id}/ban`, { reason: 'mine' });
  expect(refusal).toMatchObject({ error: { message: expect.stringMatching(/remove them from the file and reload/) } });

  const stranger = `/${solanaWallet().providerId}`;
  expect((await admin('POST', `${stranger}/ban`, { reason: 'mistyped' })).data).toMatchObject({ seen: false });
  await admin('DELETE', `${stranger}/ban`);
  expect((await admin('DELETE', `${at}/ban`)).data).toMatchObject({ banned: false, changed: true, seen: true });
  expect((await admin('DELETE', `${at}/ban`)).data).toMatchObject({ changed: false });
  expect(await ownPage()).toMatchObject({ banned_because: null });
  await world.supply('Bad', { wallet: bad.proxy.wallet, upstream: bad.upstream });
  await until(async () => ((await world.endpoints()) ?? []).length === 1);
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(200);
});

test('the account of a provider is closed only when the provider sells no more and has been paid', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const { proxy } = await world.supply('Leaving');
  expect((await spine.post('/chat/completions', askTunnel('hello !tokens:20'))).status).toBe(200);
  const at = `/${encodeURIComponent(proxy.wallet.accountId)}`;
  const accounts = administrator(spine, '/accounts');
  const providers = administrator(spine, '/providers');
  const reason = { reason: 'bye' };
  const refused = (message: RegExp) => ({
    error: { type: 'unprocessable', message: expect.stringMatching(message) as string },
  });

  await accounts('POST', `${at}/freeze`, reason);
  // Its offers stay on sale while it is frozen.
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(200);
  expect(await accounts('POST', `${at}/close`, reason)).toMatchObject(
    refused(/provider .* connected and sells. Ban it/),
  );
  await providers('POST', `${at}/ban`, reason);
  expect(await proxy.closed).toBe(2);
  const { provider } = (await accounts('GET', at)).data;
  expect(provider).toMatchObject({ provider: proxy.id, connected: false, banned: true });
  const { earnings_micro_usdc: owed, earnings_usd: left } = provider as {
    readonly earnings_micro_usdc: number;
    readonly earnings_usd: string;
  };
  expect(owed).toBeGreaterThan(0);
  expect(await accounts('POST', `${at}/close`, reason)).toMatchObject(
    refused(new RegExp(`${proxy.id}, to which ${left} USD of its earnings are owed`)),
  );
  expect((await accounts('GET', at)).data).toMatchObject({ state: 'frozen' });

  await providers('POST', `${at}/payouts`, { amount_micro_usdc: owed, reference: 'the last payment' });
  expect((await accounts('POST', `${at}/close`, reason)).data).toMatchObject({ state: 'closed' });
  // A repetition succeeds.
  expect((await accounts('POST', `${at}/close`, reason)).data).toMatchObject({ state: 'closed' });
});

test('a reload admits a provider to the list, and lets go of one that is no longer on it', async () => {
  const [first, second] = [solanaWallet(), solanaWallet()];
  const list = (...wallets: readonly TestWallet[]) =>
    `${UNHURRIED}\n[tunnel]\nproviders = ${JSON.stringify(wallets.map(({ providerId }) => providerId))}`;
  const world = await startTunnelSpine(list(first).slice(UNHURRIED.length));
  const { spine } = world;
  const reload = async (toml: string) => {
    spine.writeFile(toml);
    const { data } = await administrator(spine, '')('POST', '/reload');
    return data;
  };
  const upstream = await world.upstream();
  const dial = (wallet: TestWallet, ready: boolean) =>
    world.dialIn({ wallet, services: offeredModel({ url: upstream.url, provider: 'Listed' }), ready });
  expect(await (await dial(second, false)).closed).toBe(2);

  const proxy = await dial(first, true);
  const running = await readStream(
    spine.post('/chat/completions', askTunnel('!tokens:20 !stall:900:1500', { stream: true })),
  );
  await running.tokens(1);
  expect(await reload(list(second))).toMatchObject({ options: ['tunnel.providers'], restart: [] });
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).not.toBe(200);
  expect(await running.end).toMatch(/\[DONE\]/);
  expect(await proxy.closed).toBe(2);
  expect(await reload(list(second))).toMatchObject({ options: [], restart: [] });
  await reload(list(first));
  await dial(first, true);
  await until(async () => ((await world.endpoints()) ?? []).length === 1);
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(200);
});

function administrator({ origin, adminKey }: Spine, prefix: string) {
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(`${origin}/admin/v1${prefix}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as { readonly data: Record<string, unknown> & readonly Record<string, unknown>[] };
  };
}
