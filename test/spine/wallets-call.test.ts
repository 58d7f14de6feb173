import { describe, expect, it } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { parseUsd } from '#billing/amounts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { evmWallet, SIGN_IN_TOML, signInHeaders, solanaWallet, type TestWallet } from '../support/wallets.ts';
import { spineOfFile } from '../support/of-file.ts';

// A wallet in place of an API key: it is an account from its first sign-in, with its own escrow, generations and keys.

const spine = spineOfFile(() => ({ toml: UNHURRIED + SIGN_IN_TOML }));

const json = async (response: Response) => ({
  status: response.status,
  body: (await response.json()) as Record<string, unknown>,
});
const call = async (headers: Record<string, string>) =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ask('hello')),
  });
const balance = async (headers: Record<string, string>) =>
  (await json(await fetch(`${spine.url}/session/balance`, { headers }))).body;
const credit = (wallet: TestWallet, usd: string, id: string) =>
  spine.app.ledger.transfer({
    id: `${id}-${wallet.account}`,
    from: treasuryOf('operator'),
    to: escrowOf(wallet.account),
    amount: parseUsd(usd),
    memo: '',
  });

describe.each([
  ['Solana', solanaWallet()],
  ['EVM', evmWallet()],
] as const)('a wallet of %s', (_kind, wallet) => {
  it('has a balance of 0 before it was ever funded, and is told that its escrow is not set up', async () => {
    const headers = await signInHeaders(wallet);
    expect(await balance(headers)).toMatchObject({ balance_micro_usdc: 0 });
    expect(await json(await call(headers))).toMatchObject({
      status: 424,
      body: { error: { type: 'escrow_not_setup' } },
    });
  });

  it('pays from its escrow, and sees what it paid for, which no other caller does', async () => {
    await credit(wallet, '1', 'first');
    const headers = await signInHeaders(wallet);
    const response = await call(headers);
    expect(response.status).toBe(200);
    const id = response.headers.get('x-generation-id')!;
    await response.text();
    await spine.quiet();
    const generation = await json(await fetch(`${spine.url}/generation?id=${id}`, { headers }));
    const cost = (generation.body['data'] as { cost_micro_usdc: number }).cost_micro_usdc;
    expect(cost).toBeGreaterThan(0);
    expect(await balance(headers)).toMatchObject({ balance_micro_usdc: 1_000_000 - cost });
    for (const stranger of [{ authorization: `Bearer ${spine.key}` }, await signInHeaders(solanaWallet())])
      expect((await fetch(`${spine.url}/generation?id=${id}`, { headers: stranger })).status).toBe(404);
  });

  it('makes keys that pay from the same escrow, changes and deletes them', async () => {
    const { nonce } = (await json(await fetch(`${spine.url}/auth/nonce`))).body as { nonce: string };
    const made = await json(
      await fetch(`${spine.url}/keys`, {
        method: 'POST',
        headers: { ...(await signInHeaders(wallet, { nonce })), 'content-type': 'application/json' },
        body: '{}',
      }),
    );
    expect(made.status).toBe(201);
    const { key, data } = made.body as { key: string; data: { hash: string } };
    const before = await balance(await signInHeaders(wallet));
    expect((await call({ authorization: `Bearer ${key}` })).status).toBe(200);
    await spine.quiet();
    expect((await balance(await signInHeaders(wallet)))['balance_micro_usdc']).toBeLessThan(
      before['balance_micro_usdc'] as number,
    );

    const headers = await signInHeaders(wallet);
    const disabled = await fetch(`${spine.url}/keys/${data.hash}`, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"disabled":true}',
    });
    expect(disabled.status).toBe(200);
    expect((await call({ authorization: `Bearer ${key}` })).status).toBe(401);
    expect(
      (
        await fetch(`${spine.url}/keys/${data.hash}`, {
          method: 'DELETE',
          headers: await signInHeaders(solanaWallet()),
        })
      ).status,
    ).toBe(404);
    expect((await fetch(`${spine.url}/keys/${data.hash}`, { method: 'DELETE', headers })).status).toBe(200);
  });

  it('that is emptied is asked for money', async () => {
    const headers = await signInHeaders(wallet);
    const { available } = (await spine.app.ledger.balance(escrowOf(wallet.account)))!;
    await spine.app.ledger.transfer({
      id: `empty-${wallet.account}`,
      from: escrowOf(wallet.account),
      to: treasuryOf('operator'),
      amount: available,
      memo: '',
    });
    expect(await balance(headers)).toMatchObject({ balance_micro_usdc: 0 });
    expect(await json(await call(headers))).toMatchObject({
      status: 402,
      body: { error: { type: 'insufficient_balance' } },
    });
  });
});

it('an EVM wallet is one account on every chain, however it writes its address', async () => {
  const wallet = evmWallet();
  await credit(wallet, '2', 'one');
  for (const fields of [{}, { chainId: '1' }, { chainId: 'eip155:84532', address: wallet.address.toLowerCase() }])
    expect(await balance(await signInHeaders(wallet, fields))).toMatchObject({ balance_micro_usdc: 2_000_000 });
});

it('no log line holds a sign-in', async () => {
  const wallet = solanaWallet();
  const right = await signInHeaders(wallet);
  const wrong = await signInHeaders(wallet, { domain: 'evil.example' });
  for (const value of [right['sign-in-with-x'], wrong['sign-in-with-x']]) {
    for (const name of ['sign-in-with-x', 'x-sign-in-with-x', 'x-siwx']) await (await call({ [name]: value })).text();
    const { message, signature } = JSON.parse(Buffer.from(value, 'base64').toString('utf8')) as {
      message: string;
      signature: string;
    };
    expect(spine.logs.length).toBeGreaterThan(0);
    const logs = spine.logs.join('\n');
    for (const secret of [value, value.slice(20, 80), signature, message.slice(-40)])
      expect(logs).not.toContain(secret);
  }
});
