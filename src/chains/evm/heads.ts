import { ChainUnavailable } from '../chain.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** The newest block, and the newest final block. */
export interface EvmHeads {
  readonly latest: EvmBlock;
  readonly final: EvmBlock;
}

/**
 * Reads the newest and the newest final block. `finality`: blocks that make a block final, itself included; null: the
 * node's `finalized` block counts.
 */
export async function evmHeads(node: EvmNode, finality: number | null): Promise<EvmHeads> {
  // The final block is requested first. Otherwise a new block between the two requests could make it newer than the
  // newest.
  const finalized = finality === null ? await node.block('finalized') : null;
  const latest = await node.block('latest');
  if (!latest) throw new ChainUnavailable('The node knows no newest block');
  const depth = latest.number - BigInt(finality ?? 1) + 1n;
  const final = finality === null ? finalized : await node.block(depth > 0n ? depth : 0n);
  if (!final)
    throw new ChainUnavailable(
      'The node knows no final block. If its chain never has one, set how many blocks make a block final',
    );
  // Two machines behind one URL may be at different blocks. An older newest block is safe, but a final block beyond the
  // newest may be wrong.
  if (final.number > latest.number)
    throw new ChainUnavailable(`The node calls block ${final.number} final and ${latest.number} its newest`);
  return { latest, final };
}

/**
 * Checks that blocks are still part of the chain: the node must give the same hash for their numbers. Otherwise the
 * answers before came from different chains or different machines. Throws ChainUnavailable.
 */
export async function stillThere(node: EvmNode, blocks: readonly Pick<EvmBlock, 'number' | 'hash'>[]): Promise<void> {
  for (const { number, hash } of blocks) {
    const now = await node.block(number);
    if (now?.hash !== hash)
      throw new ChainUnavailable(`Block ${number} was replaced while it was read, or the node does not have it yet`);
  }
}
