import { Wallet } from 'lucide-react';
import type { ReactNode } from 'react';
import type { FoundWallet } from './wallet.ts';

const FAMILY = { eip155: 'EVM', solana: 'Solana' } as const;

/** The wallets of this browser as buttons. `busy` is the wallet that is being asked. */
export function WalletList({
  wallets,
  busy,
  onChoose,
}: {
  readonly wallets: readonly FoundWallet[];
  readonly busy: string | null;
  readonly onChoose: (wallet: FoundWallet) => void;
}): ReactNode {
  if (wallets.length === 0)
    return (
      <p className="rounded-lg border border-dashed border-edge px-4 py-3.5 text-sm text-soft">
        No wallet was found in this browser. Install one, such as MetaMask or Phantom, and load this page again. Any
        wallet that announces itself by EIP-6963 or the Wallet Standard is listed here.
      </p>
    );
  return (
    <ul className="grid gap-2">
      {wallets.map((wallet) => (
        <li key={wallet.id}>
          <button
            type="button"
            disabled={busy !== null}
            aria-busy={busy === wallet.id || undefined}
            onClick={() => onChoose(wallet)}
            className="flex h-14 w-full items-center gap-3.5 rounded-lg border border-line bg-card px-4 text-left transition-colors hover:border-edge disabled:opacity-60"
          >
            {wallet.icon === null ? (
              <span className="grid size-8 place-items-center rounded-md bg-sunk text-soft">
                <Wallet size={18} aria-hidden />
              </span>
            ) : (
              <img src={wallet.icon} alt="" width={32} height={32} className="size-8 rounded-md" />
            )}
            <span className="min-w-0 grow truncate font-medium">{wallet.name}</span>
            <span className="text-sm text-soft">
              {busy === wallet.id ? 'Waiting for the wallet…' : FAMILY[wallet.family]}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
