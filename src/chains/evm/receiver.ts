import { getAddress, type Hex } from 'viem';

/**
 * The reason why an address cannot get a payout; null if it can. `forbidden`: addresses that are not paid, each with
 * its description.
 */
export function receiverFault(address: string, forbidden: readonly (readonly [Hex, string])[]): string | null {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return 'An EVM address is 20 bytes of hex after 0x';
  const digits = address.slice(2);
  const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  const right = getAddress(address.toLowerCase());
  if (mixed && address !== right)
    return 'The capital letters of the address do not match its checksum (EIP-55), so a digit is wrong';
  const why = forbidden.find(([one]) => one.toLowerCase() === address.toLowerCase())?.[1];
  return why === undefined ? null : `${right} is ${why}, which is not paid`;
}
