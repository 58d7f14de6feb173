import OpenAI from 'openai';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { BASE_SEPOLIA_USDC } from '../../support/chain/evm-token.ts';
import { evmMoney, type EvmMoney } from '../../support/chain/money-chain.ts';
import { fromHeader } from '../../support/paper-chain.ts';
import { ask, modelBlock, startSpine, type Spine } from '../../support/spine.ts';
import { evmWallet } from '../../support/wallets.ts';

// The OpenAI SDK as it is, with nothing but the `fetch` of x402 and no key, as docs/use/pay-with-a-wallet.md has it.

let chain: EvmMoney;
let spine: Spine;
beforeAll(async () => {
  chain = await evmMoney({ token: { at: BASE_SEPOLIA_USDC } });
  spine = await startSpine({
    credit: '0',
    env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' },
    toml: `${modelBlock({ name: 'test/dear', provider: 'Dear', url: '{provider}', prompt: 0, completion: 5_000 })}
[[chains]]
network = "${chain.network}"
rpc_url = "${chain.url}"
private_key = "${toHex(chain.setup.treasuryKey)}"
min_topup = 0.5
`,
  });
});
afterAll(async () => {
  await spine?.stop();
  await chain?.stop();
});

function sdkOf(key: Uint8Array, defaultHeaders: Record<string, string | null>): OpenAI {
  const client = new x402Client().register(
    chain.network as 'eip155:0',
    new ExactEvmScheme(privateKeyToAccount(toHex(key))),
  );
  return new OpenAI({
    baseURL: spine.url,
    apiKey: 'none',
    defaultHeaders,
    fetch: wrapFetchWithPayment(fetch, client),
    maxRetries: 0,
  });
}

test('an x402 client pays for a resource that is a path alone, at a name that the gateway does not know', async () => {
  const wallet = evmWallet();
  await chain.mint(wallet.address, 5_000_000n);
  const client = new x402Client().register(
    chain.network as 'eip155:0',
    new ExactEvmScheme(privateKeyToAccount(toHex(wallet.secret))),
  );
  const asked: unknown[] = [];
  const pay = wrapFetchWithPayment(async (input, init) => {
    const response = await fetch(input, init);
    const terms = response.headers.get('payment-required');
    asked.push(terms === null ? null : fromHeader(terms)['resource']);
    return response;
  }, client);
  const answer = await pay(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-host': 'gate.example' },
    body: JSON.stringify(ask('hello !tokens:20', { model: 'test/dear' })),
  });
  expect(answer.status).toBe(200);
  expect(asked).toMatchObject([{ url: '/api/v1/chat/completions' }, null]);
  await answer.text();
  await spine.quiet();
});

test('the OpenAI SDK pays for whole answers and for streams', async () => {
  const wallet = evmWallet();
  await chain.mint(wallet.address, 5_000_000n);
  const sdk = sdkOf(wallet.secret, { authorization: null });
  const body = {
    ...ask('hello !tokens:20', { model: 'test/dear' }),
    messages: [{ role: 'user' as const, content: 'hello !tokens:20' }],
  };
  const whole = await sdk.chat.completions.create(body);
  expect(whole.choices[0]!.finish_reason).toBe('stop');
  const chunks: unknown[] = [];
  for await (const chunk of await sdk.chat.completions.create({ ...body, stream: true })) chunks.push(chunk);
  expect(chunks.length).toBeGreaterThan(20);
  await spine.quiet();
  expect((await spine.app.ledger.balance(escrowOf(wallet.account)))?.available).toBe(2n * 500_000n - 2n * 100_000n);

  const withKey = sdkOf(wallet.secret, {});
  await expect(withKey.chat.completions.create(body)).rejects.toMatchObject({
    status: 401,
    message: expect.stringContaining('in place, send no credential') as string,
  });
});
