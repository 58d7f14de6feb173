import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { BASE, SOLANA_MAINNET } from './chain-id.ts';
import { evmWallet, parseEvmSecret, solanaWallet } from './wallet-keys.ts';
import type { Wallet } from './wallet.ts';

/**
 * Creates a wallet. `fileText` is the content of its keypair file: for Solana the JSON array that solana-keygen writes,
 * for EVM 0x-hex.
 */
export async function createWallet(
  chain: 'solana' | 'evm',
): Promise<{ readonly wallet: Wallet; readonly fileText: string }> {
  if (chain === 'solana') {
    const { secretKey } = nacl.sign.keyPair.fromSeed(randomBytes(32));
    return {
      wallet: solanaWallet(SOLANA_MAINNET, secretKey, 'The new key'),
      fileText: `${JSON.stringify([...secretKey])}\n`,
    };
  }
  const secret = parseEvmSecret(randomBytes(32).toString('hex'), 'The new key')!;
  return { wallet: await evmWallet(BASE, secret), fileText: `${secret}\n` };
}
