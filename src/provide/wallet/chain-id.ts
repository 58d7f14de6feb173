import { WalletError, type Wallet } from './wallet.ts';

/** Base, the default chain of an EVM wallet. */
export const BASE = 'eip155:8453';

/** CAIP-2 names a Solana cluster by the first characters of its genesis hash. */
const SOLANA_CLUSTERS: Readonly<Record<string, string>> = {
  mainnet: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  devnet: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  testnet: '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
};
export const SOLANA_MAINNET = `solana:${SOLANA_CLUSTERS['mainnet']}`;

const SOLANA_REFERENCE = /^[1-9A-HJ-NP-Za-km-z]{32}$/;
const EVM_REFERENCE = /^[1-9][0-9]{0,31}$/;

const RIGHT = `Give it as CAIP-2: eip155:<number>, such as ${BASE} for Base, or ${SOLANA_MAINNET} for Solana (solana:mainnet, solana:devnet and solana:testnet are understood)`;

/** Reads a CAIP-2 id, or a Solana cluster by name (`solana:devnet`). Throws WalletError. */
export function parseChainId(text: string): Pick<Wallet, 'namespace' | 'chainId'> {
  const colon = text.indexOf(':');
  const namespace = text.slice(0, Math.max(colon, 0));
  const reference = text.slice(colon + 1);
  if (namespace === 'eip155' && EVM_REFERENCE.test(reference)) return { namespace, chainId: text };
  if (namespace === 'solana') {
    const cluster = Object.hasOwn(SOLANA_CLUSTERS, reference) ? SOLANA_CLUSTERS[reference]! : reference;
    if (SOLANA_REFERENCE.test(cluster)) return { namespace, chainId: `solana:${cluster}` };
  }
  // The text is shown only if it can't be a secret in the wrong field.
  const shown =
    text.length <= 42 && /^[a-z0-9]{1,12}(?::|$)/i.test(text) && !/[0-9a-f]{40}/i.test(text)
      ? ` ${JSON.stringify(text)}`
      : '';
  throw new WalletError(`The chain id${shown} is not a chain that a wallet can sign in on. ${RIGHT}`);
}
