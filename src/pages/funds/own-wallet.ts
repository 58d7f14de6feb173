import { checksummed } from '#wire';

/** The wallet that an account is named after. */
interface OwnWallet {
  readonly family: 'eip155' | 'solana';
  /** EVM addresses are in lower case. */
  readonly address: string;
  /**
   * CAIP-2 id of the chain of a contract wallet. null for an ordinary wallet, which exists on all chains of its family.
   */
  readonly network: string | null;
}

const EVM = /^(eip155:\d+:|eip155:)(0x[0-9a-f]{40})$/;

/** Returns the wallet of a ledger account, or null if the account isn't a wallet. */
export function ownWallet(account: string): OwnWallet | null {
  if (account.startsWith('solana:'))
    return { family: 'solana', address: account.slice('solana:'.length), network: null };
  const [, place, address] = EVM.exec(account) ?? [];
  if (place === undefined || address === undefined) return null;
  return { family: 'eip155', address, network: place === 'eip155:' ? null : place.slice(0, -1) };
}

export const familyOf = (network: string): OwnWallet['family'] => (network.startsWith('eip155:') ? 'eip155' : 'solana');

/** The forms in which a wallet's address may be stored. */
export function formsOf({ family, address }: OwnWallet): readonly string[] {
  return family === 'solana' ? [address] : [checksummed(address), address];
}

/** The address in the form that people and block explorers use. */
export const shownAddress = ({ family, address }: OwnWallet): string =>
  family === 'solana' ? address : checksummed(address);
