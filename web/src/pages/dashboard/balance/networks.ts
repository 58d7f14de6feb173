/** Common names of networks, by CAIP-2 id. */
const NAMES: Readonly<Record<string, string>> = {
  'eip155:1': 'Ethereum',
  'eip155:10': 'Optimism',
  'eip155:137': 'Polygon',
  'eip155:8453': 'Base',
  'eip155:42161': 'Arbitrum',
  'eip155:84532': 'Base Sepolia',
  'eip155:11155111': 'Sepolia',
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': 'Solana',
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': 'Solana Devnet',
};

export const networkName = (network: string): string =>
  NAMES[network] ?? (network.startsWith('eip155:') ? `EVM chain ${network.slice(7)}` : network.slice(0, 20));

const EXPLORERS: Readonly<Record<string, string>> = {
  'eip155:1': 'https://etherscan.io/tx/',
  'eip155:10': 'https://optimistic.etherscan.io/tx/',
  'eip155:137': 'https://polygonscan.com/tx/',
  'eip155:8453': 'https://basescan.org/tx/',
  'eip155:42161': 'https://arbiscan.io/tx/',
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': 'https://solscan.io/tx/',
};

/** The address of a transaction on a public block explorer. null if no explorer is known for the network. */
export const explorerOf = (network: string, transaction: string): string | null =>
  EXPLORERS[network] === undefined ? null : EXPLORERS[network] + encodeURIComponent(transaction);
