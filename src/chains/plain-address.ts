/** An address in a normal form for comparisons. Addresses of EVM chains are written in upper, lower and mixed case. */
export const plainAddress = (network: string, address: string): string =>
  network.startsWith('eip155:') ? address.toLowerCase() : address;
