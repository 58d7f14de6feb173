import { ChainUnavailable, FinalityBroken } from '../chain.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** The cursor of a block: `<number>/<hash>`. */
export const cursorOf = ({ number, hash }: EvmBlock): string => `${number}/${hash}`;

/**
 * The block of a cursor. Rejects with ChainUnavailable if the node does not know it, and with FinalityBroken if the
 * chain has another block with its number.
 */
export async function blockAt(
  node: Pick<EvmNode, 'block'>,
  network: string,
  cursor: string,
  latest: bigint,
): Promise<EvmBlock> {
  const match = /^(\d{1,18})\/(0x[0-9a-f]{64})$/.exec(cursor);
  if (!match) throw new Error(`Not a cursor of an EVM chain: ${JSON.stringify(cursor.slice(0, 100))}`);
  const number = BigInt(match[1]!);
  if (number > latest)
    throw new ChainUnavailable(`The node is only at block ${latest}, but block ${number} was already final`);
  const block = await node.block(number);
  if (!block) throw new ChainUnavailable(`The node does not know block ${number}, which was already final`);
  if (block.hash !== match[2])
    throw new FinalityBroken(
      `Finality of ${network} was broken: block ${number} was ${match[2]} and final, and is now ${block.hash}. Check by hand what was credited since (tollgate audit)`,
    );
  return block;
}
