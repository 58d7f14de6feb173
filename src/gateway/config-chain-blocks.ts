import { option, urlFault } from './config-option.ts';
import { show, WrongValue } from './config-problem.ts';
import { complain, isTable, type Reading } from './config-reading.ts';
import { readTable, valuesOf } from './config-table.ts';
import type { ChainConfig } from './config.ts';

const CHAINS_MAX = 100;
const CAIP2 = /^(?:eip155:[1-9]\d{0,18}|solana:[1-9A-HJ-NP-Za-km-z]{32})$/;

/** The keys of a `[[chains]]` block. */
export const CHAIN_OPTIONS = {
  network: option({
    takes: 'a CAIP-2 id such as `eip155:8453`',
    meaning: 'The chain.',
    read: (value) => {
      if (typeof value === 'string' && CAIP2.test(value)) return value;
      throw new WrongValue(`is ${show(value)}`, 'the CAIP-2 id of an EVM chain or of Solana, such as eip155:8453');
    },
  }),
  rpc_url: option({
    takes: 'an http:// or https:// URL',
    secret: true,
    meaning: 'JSON-RPC address of a node of that chain: contract wallets are asked there whether a signature is theirs.',
    read: (value) => {
      const right = 'an http:// or https:// URL, or "std::env::NAME"';
      if (typeof value !== 'string') throw new WrongValue('is not text', right);
      const fault = urlFault(value, ['http:', 'https:']);
      if (fault !== null) throw new WrongValue(fault, right);
      return value;
    },
  }),
};

/** All `[[chains]]` blocks that have no problems, in their order. */
export function readChains(value: unknown, reading: Reading): readonly ChainConfig[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > CHAINS_MAX) {
    const wrong = Array.isArray(value) ? `has ${value.length} blocks` : `is ${show(value)}`;
    complain(reading, 'chains', wrong, `one [[chains]] block for each chain, at most ${CHAINS_MAX}`);
    return [];
  }
  const chains: ChainConfig[] = [];
  for (const [index, block] of (value as readonly unknown[]).entries()) {
    const path = `chains[${index}]`;
    if (!isTable(block)) {
      complain(reading, path, `is ${show(block)}`, 'a [[chains]] block');
      continue;
    }
    const read = valuesOf(readTable(block, path, CHAIN_OPTIONS, reading), CHAIN_OPTIONS);
    if (!read) continue;
    const { network, rpc_url: rpcUrl } = read;
    if (chains.some((chain) => chain.network === network))
      complain(reading, `${path}.network`, `${show(network)} is there twice`, 'one block for each chain');
    else chains.push({ network, rpcUrl });
  }
  return chains;
}
