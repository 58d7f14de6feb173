import { checksummed } from '#wire';

/** A wallet that an account stands for. */
interface OwnWallet {
  readonly family: 'eip155' | 'solana';
  /** EVM: lower case. */
  readonly address: string;
  /** CAIP-2 of the one chain that a contract wallet is on; null for an ordinary one, which is on all of its family. */
  readonly network: string | null;
}

const EVM = /^(eip155:\d+:|eip155:)(0x[0-9a-f]{40})$/;

/** The wallet of a ledger account; null for an account without one of its own. */
export function ownWallet(account: string): OwnWallet | null {
  if (account.startsWith('solana:'))
    return { family: 'solana', address: account.slice('solana:'.length), network: null };
  const [, place, address] = EVM.exec(account) ?? [];
  if (place === undefined || address === undefined) return null;
  return { family: 'eip155', address, network: place === 'eip155:' ? null : place.slice(0, -1) };
}

export const familyOf = (network: string): OwnWallet['family'] => (network.startsWith('eip155:') ? 'eip155' : 'solana');

/** The forms that the address of a wallet may have been kept in. */
export function formsOf({ family, address }: OwnWallet): readonly string[] {
  return family === 'solana' ? [address] : [checksummed(address), address];
}

/** As people and explorers know it. */
export const shownAddress = ({ family, address }: OwnWallet): string =>
  family === 'solana' ? address : checksummed(address);
