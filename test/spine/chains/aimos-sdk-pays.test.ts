import { createKeyPairSignerFromBytes } from '@solana/kit';
import { toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ask, events, modelBlock } from '../../support/spine.ts';
import { DOMAIN, evmWallet, solanaWallet } from '../../support/wallets.ts';
import { AimoClient, EvmClientSigner, SvmClientSigner } from './support/aimos-sdk.ts';
import { type ChainsSpine, LEAST, startChainsSpine } from './support/chains-spine.ts';

// AiMo's own SDK as it is published. It signs in for every request, and pays the 402 that it gets.

/** 20 tokens are 0.1 USD, the 50 that a request allows are 0.25. */
const COST = 100_000n;

let world: ChainsSpine;
beforeAll(async () => {
  world = await startChainsSpine({
    toml: modelBlock({ name: 'delphi/oracle', provider: 'Delphi', url: '{provider}', prompt: 0, completion: 5_000 }),
  });
});
afterEach(() => world.balanced());
afterAll(() => world?.stop());

const wallets = {
  async evm() {
    const wallet = evmWallet();
    const chainId = world.evm.network as `eip155:${string}`;
    return { wallet, signer: new EvmClientSigner({ signer: privateKeyToAccount(toHex(wallet.secret)), chainId }) };
  },
  async solana() {
    const wallet = solanaWallet();
    const signer = await createKeyPairSignerFromBytes(wallet.secret);
    const { network, url } = world.solana;
    return {
      wallet,
      signer: new SvmClientSigner({ signer, chainId: network as `solana:${string}`, config: { rpcUrl: url } }),
    };
  },
};

test.for(['evm', 'solana'] as const)(
  'on %s it signs in, calls and streams, and pays when its balance ends',
  async (family) => {
    const { wallet, signer } = await wallets[family]();
    await world[family].mint(wallet.address, 5_000_000n);
    const client = new AimoClient({ signer, baseUrl: world.spine.origin, siwxDomain: DOMAIN });
    expect(await client.sessionBalance()).toMatchObject({ balance_micro_usdc: 0 });

    const paid: boolean[] = [];
    for (const stream of [false, true, false, true]) {
      const answer = await client.chatCompletions(ask('hello !tokens:20', { model: 'delphi/oracle', stream }));
      const text = await answer.text();
      expect(answer.status, text).toBe(200);
      if (stream) expect(events(text).at(-1)).toBe('[DONE]');
      else expect(JSON.parse(text)).toMatchObject({ usage: { cost: 0.1 } });
      paid.push(answer.headers.has('payment-response'));
      await world.spine.quiet();
    }
    // 0.2 are left before the fourth, which asks for 0.25.
    expect(paid).toEqual([true, false, false, true]);
    expect(await client.sessionBalance()).toMatchObject({ balance_micro_usdc: Number(2n * LEAST - 4n * COST) });
  },
);
