import { type ConnectedWallet, type FoundWallet, walletError, WalletError } from './wallet.ts';

/** An EIP-1193 provider. */
interface EvmProvider {
  request(asked: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>;
}

interface Announced {
  readonly info: { readonly uuid: string; readonly name: string; readonly icon: string; readonly rdns: string };
  readonly provider: EvmProvider;
}

/**
 * Finds wallets by EIP-6963: each wallet announces itself on request. `found` is called once for each wallet. Returns a
 * function that stops listening.
 */
export function findEvmWallets(found: (wallet: FoundWallet) => void): () => void {
  const seen = new Set<string>();
  const hear = (event: Event) => {
    const { info, provider } = (event as CustomEvent<Announced>).detail;
    if (seen.has(info.uuid)) return;
    seen.add(info.uuid);
    found({
      id: `evm:${info.uuid}`,
      name: info.name.slice(0, 60),
      icon: iconOf(info.icon),
      family: 'eip155',
      connect: () => connect(provider, info.name),
    });
  };
  addEventListener('eip6963:announceProvider', hear);
  dispatchEvent(new Event('eip6963:requestProvider'));
  return () => removeEventListener('eip6963:announceProvider', hear);
}

/** A wallet's icon must be a data URI. Icons from other hosts are not loaded. */
export const iconOf = (icon: string | undefined): string | null => (icon?.startsWith('data:image/') ? icon : null);

async function connect(provider: EvmProvider, name: string): Promise<ConnectedWallet> {
  const ask = async (method: string, params: readonly unknown[], what: string): Promise<unknown> => {
    try {
      return await provider.request({ method, params });
    } catch (error) {
      throw walletError(error, what);
    }
  };
  const [address] = (await ask('eth_requestAccounts', [], 'shared')) as readonly string[];
  if (address === undefined) throw new WalletError('The wallet has no account. Make one in it, then try again.');
  const chain = async () => `eip155:${Number.parseInt((await ask('eth_chainId', [], 'shared')) as string, 16)}`;
  return {
    name,
    family: 'eip155',
    address,
    network: await chain(),
    async signMessage(text) {
      const bytes = new TextEncoder().encode(text);
      const hex = `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
      return (await ask('personal_sign', [hex, address], 'signed')) as string;
    },
    async signTypedData(data, network) {
      // Wallets sign typed data only for their current chain, so it may have to be switched.
      if ((await chain()) !== network) {
        const chainId = `0x${Number(network.split(':')[1]).toString(16)}`;
        await ask('wallet_switchEthereumChain', [{ chainId }], 'signed');
      }
      return (await ask('eth_signTypedData_v4', [address, JSON.stringify(data)], 'signed')) as string;
    },
    signTransaction: null,
  };
}
