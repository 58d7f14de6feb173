import { ChainUnavailable } from '../chain.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** The newest block, and the newest that can no longer be undone. */
export interface EvmHeads {
  readonly latest: EvmBlock;
  readonly final: EvmBlock;
}

/**
 * Reads both ends of the chain. `finality`: blocks that make a block final, itself included; null: what the node
 * calls finalized.
 */
export async function evmHeads(node: EvmNode, finality: number | null): Promise<EvmHeads> {
  // What is final is asked first: a block that comes between the two must not put it past the newest.
  const finalized = finality === null ? await node.block('finalized') : null;
  const latest = await node.block('latest');
  if (!latest) throw new ChainUnavailable('The node knows no newest block');
  const depth = latest.number - BigInt(finality ?? 1) + 1n;
  const final = finality === null ? finalized : await node.block(depth > 0n ? depth : 0n);
  if (!final)
    throw new ChainUnavailable(
      'The node knows no final block. If its chain never has one, set how many blocks make a block final',
    );
  // Two machines behind one address, the second further than the first. An older answer for the newest block is
  // never wrong, a final one beyond it may be.
  if (final.number > latest.number)
    throw new ChainUnavailable(`The node calls block ${final.number} final and ${latest.number} its newest`);
  return { latest, final };
}

/**
 * Makes sure that blocks which answers were about are still the chain's: asked by number, the node must give the
 * same hash. Otherwise the answers between were of different chains, or of different machines.
 */
export async function stillThere(node: EvmNode, blocks: readonly Pick<EvmBlock, 'number' | 'hash'>[]): Promise<void> {
  for (const { number, hash } of blocks) {
    const now = await node.block(number);
    if (now?.hash !== hash)
      throw new ChainUnavailable(
        `Block ${number} was exchanged while it was looked at, or the node does not know it yet`,
      );
  }
}
