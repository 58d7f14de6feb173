import { getWallets } from '@wallet-standard/app';
import type { Wallet, WalletAccount } from '@wallet-standard/base';
import { iconOf } from './evm-wallets.ts';
import { type ConnectedWallet, type FoundWallet, walletError, WalletError } from './wallet.ts';

interface Features {
  readonly 'standard:connect'?: { connect(): Promise<{ readonly accounts: readonly WalletAccount[] }> };
  readonly 'solana:signMessage'?: {
    signMessage(asked: {
      readonly account: WalletAccount;
      readonly message: Uint8Array;
    }): Promise<readonly { readonly signature: Uint8Array }[]>;
  };
  readonly 'solana:signTransaction'?: {
    signTransaction(asked: {
      readonly account: WalletAccount;
      readonly transaction: Uint8Array;
      readonly chain?: string;
    }): Promise<readonly { readonly signedTransaction: Uint8Array }[]>;
  };
}

/** CAIP-2 ids by the cluster names that wallets use. */
const NETWORKS: Readonly<Record<string, string>> = {
  'solana:mainnet': 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  'solana:devnet': 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  'solana:testnet': 'solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
};

/** Finds wallets of the Wallet Standard that can sign messages for Solana. Same interface as findEvmWallets. */
export function findSolanaWallets(found: (wallet: FoundWallet) => void): () => void {
  const { get, on } = getWallets();
  const seen = new Set<Wallet>();
  const tell = (...wallets: readonly Wallet[]) => {
    for (const wallet of wallets) {
      if (seen.has(wallet) || !('solana:signMessage' in wallet.features)) continue;
      seen.add(wallet);
      found({
        id: `solana:${seen.size}:${wallet.name}`,
        name: wallet.name.slice(0, 60),
        icon: iconOf(wallet.icon),
        family: 'solana',
        connect: () => connect(wallet),
      });
    }
  };
  tell(...get());
  return on('register', tell);
}

async function connect(wallet: Wallet): Promise<ConnectedWallet> {
  const features = wallet.features as Features;
  const asking = async <T>(ask: () => Promise<T> | undefined, what: string): Promise<T> => {
    try {
      const answer = await ask();
      if (answer === undefined) throw new WalletError('This wallet cannot do that. Try another one.');
      return answer;
    } catch (error) {
      throw walletError(error, what);
    }
  };
  const { accounts } = await asking(() => features['standard:connect']?.connect(), 'shared');
  const account = accounts.find(({ chains }) => chains.some((chain) => chain.startsWith('solana:')));
  if (account === undefined)
    throw new WalletError('The wallet has no account on Solana. Make one in it, then try again.');
  return {
    name: wallet.name,
    family: 'solana',
    address: account.address,
    network: NETWORKS[account.chains.find((chain) => chain in NETWORKS) ?? ''] ?? NETWORKS['solana:mainnet']!,
    async signMessage(text) {
      const message = new TextEncoder().encode(text);
      const [signed] = await asking(() => features['solana:signMessage']?.signMessage({ account, message }), 'signed');
      return signed!.signature.toBase64();
    },
    signTypedData: null,
    signTransaction:
      features['solana:signTransaction'] === undefined
        ? null
        : async (base64, network) => {
            const transaction = Uint8Array.fromBase64(base64);
            const chain = Object.keys(NETWORKS).find((name) => NETWORKS[name] === network);
            const asked = { account, transaction, ...(chain === undefined ? {} : { chain }) };
            const [signed] = await asking(() => features['solana:signTransaction']?.signTransaction(asked), 'signed');
            return signed!.signedTransaction.toBase64();
          },
  };
}
