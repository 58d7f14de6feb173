import { expect, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine } from '../../../support/tunnel-spine.ts';
import { evmWallet, solanaWallet, type TestWallet } from '../../../support/wallets.ts';

// `tunnel.providers` says who may dial in.

test('who is on the list dials in, by public key or account id, and nobody else', async () => {
  const listed = { solana: solanaWallet(), evm: evmWallet(), byAccount: evmWallet() };
  const names = [listed.solana.address, listed.evm.address, listed.byAccount.accountId, 'tollgate:local:listed'];
  const world = await startTunnelSpine(`[tunnel]\nproviders = ${JSON.stringify(names)}`);
  const { spine } = world;
  const upstream = await world.upstream();
  let count = 0;
  const dial = (as: { readonly wallet?: TestWallet; readonly apiKey?: string }, ready = true) => {
    count += 1;
    return world.dialIn({ ...as, ready, services: offeredModel({ url: upstream.url, provider: `P${count}` }) });
  };
  for (const wallet of Object.values(listed)) await dial({ wallet });
  await dial({ apiKey: (await spine.tenant('listed', '0')).key });
  expect(await world.endpoints()).toHaveLength(4);

  const strangers = [
    { wallet: solanaWallet() },
    { wallet: evmWallet() },
    { apiKey: (await spine.tenant('stranger', '0')).key },
  ];
  for (const stranger of strangers) {
    const proxy = await dial(stranger, false);
    expect(await proxy.closed).toBe(2);
    expect(await proxy.logged('this provider may not connect here')).toMatchObject({
      status: 403,
      message: expect.stringMatching(/list of providers/),
    });
  }
  expect(await world.endpoints()).toHaveLength(4);
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(200);
});
