/** An address in the one spelling that comparisons are made with: those of EVM chains are written in many. */
export const plainAddress = (network: string, address: string): string =>
  network.startsWith('eip155:') ? address.toLowerCase() : address;
