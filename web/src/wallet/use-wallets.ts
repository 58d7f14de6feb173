import { useEffect, useState } from 'react';
import { findEvmWallets } from './evm-wallets.ts';
import { findSolanaWallets } from './solana-wallets.ts';
import type { FoundWallet, WalletFamily } from './wallet.ts';

/** The wallets of this browser, of one family or of both, in the order of their announcements. */
export function useWallets(family?: WalletFamily): readonly FoundWallet[] {
  const [wallets, setWallets] = useState<readonly FoundWallet[]>([]);
  useEffect(() => {
    const add = (wallet: FoundWallet) =>
      setWallets((known) => (known.some(({ id }) => id === wallet.id) ? known : [...known, wallet]));
    const stops = [findEvmWallets(add), findSolanaWallets(add)];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  return family === undefined ? wallets : wallets.filter((wallet) => wallet.family === family);
}
