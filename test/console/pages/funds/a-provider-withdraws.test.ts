import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { earningsOf, escrowOf } from '#billing';
import { DOMAIN, signInHeaders, type TestWallet } from '../../../support/wallets.ts';
import { openFundsWorld, termsOf, type FundsWorld } from './funds-world.ts';

// `tollgate-provide withdraw`, against a real chain.

let world: FundsWorld;
beforeAll(async () => {
  world = await openFundsWorld({ chain: 'withdrawal_min = 0.1' });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.stop();
});

/** Runs a command with the provider's file, which has the key of its wallet. */
async function commandsOf({ chainId, secret }: TestWallet) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-withdraw-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'wallet.hex'), `0x${Buffer.from(secret).toString('hex')}`, { mode: 0o600 });
  const file = join(folder, 'provider.toml');
  await writeFile(
    file,
    `[router]\nurl = "${world.spine.origin}"\n[router.siwx]\nchain_id = "${chainId}"\nkeypair_file = "wallet.hex"\ndomain = "${DOMAIN}"\n` +
      '[[models]]\nname = "mine/one"\nprovider_name = "Mine"\npricing = { prompt = 1, completion = 1 }\nparams = { model = "one", api_base = "http://127.0.0.1:9" }\n',
  );
  return (...args: string[]) =>
    promisify(execFile)(process.execPath, ['src/program/cli/provider-main.ts', ...args, '--config', file]);
}

test('earnings go to the wallet of the file, once for each reference', async () => {
  const wallet = await world.wallet();
  const headers = await signInHeaders(wallet);
  const terms = termsOf((await world.call('POST', '/topup', { headers, body: { amount_usd: 5 } })).headers);
  const paid = { ...headers, ...(await world.pay(wallet.signer, terms)) };
  expect((await world.call('POST', '/topup', { headers: paid, body: { amount_usd: 5 } })).status).toBe(200);
  const run = await commandsOf(wallet);
  await expect(run('withdraw')).rejects.toMatchObject({
    stderr: expect.stringContaining('your earnings are 0 USD') as string,
  });
  await world.spine.app.ledger.transfer({
    id: 'test-earned',
    from: escrowOf(wallet.account),
    to: earningsOf(wallet.providerId),
    amount: 3_000_000n,
    memo: '',
  });
  const before = await world.token.balanceOf(wallet.signer.address);
  await expect(run('withdraw', '9')).rejects.toMatchObject({ code: 1 });
  await expect(run('withdraw', '1', '--network', 'eip155:1')).rejects.toMatchObject({
    stderr: expect.stringContaining(`--network is one of ${world.network}`) as string,
  });
  for (let time = 0; time < 2; time++) {
    const { stdout } = await run('withdraw', '1', '--reference', 'mine-1');
    expect(stdout).toContain(`1 USD go to ${wallet.address} on ${world.network}`);
  }
  const { stdout, stderr } = await run('withdraw');
  expect(stdout).toContain('2 USD go to');
  expect(stderr).toContain('--reference cli-');
  await world.until(
    () => world.token.balanceOf(wallet.signer.address),
    (balance) => balance === before + 3_000_000n,
  );
  await world.until(
    async () => (await run('earnings')).stdout,
    (text) => text.match(/ paid .*0x[0-9a-f]{64}/g)?.length === 2,
  );
});
