import { generatePrivateKey } from 'viem/accounts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { escrowOf } from '#billing';
import { solanaMoney, type EvmMoney, type SolanaMoney } from '../../support/chain/money-chain.ts';
import { memo, newPayer, send, transfer } from '../../support/chain/solana-wallet.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { evmWallet, signInHeaders } from '../../support/wallets.ts';
import { expectBalanced } from './support/books.ts';
import { baseSepolia, CHAINS_TOML, chainToml } from './support/chains-spine.ts';
import { fundPayer } from './support/payer.ts';

// A reload opens a further chain while the gateway runs: it is paid over at once.

let evm: EvmMoney;
let solana: SolanaMoney;
let spine: Spine;
beforeAll(async () => {
  [evm, solana] = await Promise.all([baseSepolia(), solanaMoney()]);
  spine = await startSpine({ credit: '0', toml: CHAINS_TOML + chainToml(evm) });
});
afterAll(async () => {
  await spine?.stop();
  await Promise.all([evm, solana].map((chain) => chain?.stop()));
});

const reload = async (toml: string) => {
  spine.writeFile(toml);
  const response = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  return { status: response.status, body: await response.text() };
};
const networks = async () =>
  ((await (await spine.get('/payments/chains')).json()) as { data: { network: string }[] }).data.map(
    ({ network }) => network,
  );

it('whose treasury cannot be used leaves everything as it was', async () => {
  const wrong = chainToml(solana).replace(/private_key = .*/, 'keypair_file = "/nowhere.json"');
  expect((await reload(CHAINS_TOML + chainToml(evm) + wrong)).status).not.toBe(200);
  expect(await networks()).toEqual([evm.network]);
});

it('is paid over from then on, and its books are compared', async () => {
  const both = CHAINS_TOML + chainToml(evm) + chainToml(solana);
  const done = await reload(both);
  expect(done.status, done.body).toBe(200);
  expect(JSON.parse(done.body)).toMatchObject({ data: { chains: [solana.network], restart: [] } });
  expect(await networks()).toEqual([evm.network, solana.network]);
  for (const chain of [evm, solana]) {
    const payer = await fundPayer(chain);
    const answer = await payer.ask(`${spine.url}/topup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ amount_usd: '0.75' }),
    });
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ data: { network: chain.network, credited_micro_usdc: 750_000 } });
  }
  await expectBalanced(spine, [evm, solana]);
  expect(JSON.parse((await reload(both)).body)).toMatchObject({ data: { chains: [], restart: [] } });
});

it('that is gone from the file, or has other terms, waits for a restart', async () => {
  const changed = chainToml(solana).replace('min_topup = 0.5', 'min_topup = 0.6');
  const done = JSON.parse((await reload(CHAINS_TOML + changed)).body) as { data: { restart: string[] } };
  expect(done.data.restart.toSorted()).toEqual([`chains ${evm.network}`, `chains ${solana.network}`].toSorted());
  expect(await networks()).toEqual([evm.network, solana.network]);
});

it('that does not answer yet has its contract wallets from then on', async () => {
  const contract = evmWallet();
  const onTen = { ...contract, chainId: 'eip155:10', sign: async () => `0x${'11'.repeat(80)}` };
  const signIn = async () => (await fetch(`${spine.url}/credits`, { headers: await signInHeaders(onTen) })).status;
  expect(await signIn()).toBe(401);
  const key = generatePrivateKey();
  const ten = `[[chains]]\nnetwork = "eip155:10"\nrpc_url = "http://127.0.0.1:9"\nprivate_key = "${key}"
asset = "${contract.address}"\nasset_name = "USD Coin"\nasset_version = "2"\n`;
  const done = await reload(CHAINS_TOML + chainToml(evm) + chainToml(solana) + ten);
  expect(JSON.parse(done.body)).toMatchObject({ data: { chains: ['eip155:10'], restart: [] } });
  // Its node would have to be asked.
  expect(await signIn()).toBe(503);
  // It may be meant for an ordinary wallet or for a contract: the operator says for which.
  const payer = await newPayer();
  solana.twin.fundUsdc(payer.address, 1_000_000n);
  solana.twin.fundSol(payer.address);
  const to = solana.treasury as typeof payer.address;
  const paid = transfer({ from: payer.address, to, amount: 1_000_000n });
  await send(solana.twin, payer, [memo(`eip155:10:${contract.address}`), paid]);
  await solana.finalize();
  const admin = { headers: { authorization: `Bearer ${spine.adminKey}` } };
  const suspense = async () => {
    const answer = await fetch(`${spine.origin}/admin/v1/deposits`, admin);
    return ((await answer.json()) as { data: { payer: string }[] }).data.map((deposit) => deposit.payer);
  };
  const credited = () => spine.app.ledger.balance(escrowOf(contract.account));
  await expect
    .poll(async () => [...(await suspense()), await credited()], { timeout: 60_000 })
    .toEqual([payer.address, null]);
});
