import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { TRANSFER, topicOf, transferOf, type EvmAsset } from './asset.ts';
import { stillThere } from './heads.ts';
import { isPruned, type EvmBlock, type EvmLog, type EvmNode } from './rpc.ts';

/** Converts the amount that a Transfer reports into the amount that arrived. */
export type Arrived = (said: MicroUsd) => MicroUsd;

/** Compares the token's logs with the treasury's balance. */
export interface Arrivals {
  /** The conversion for the Transfers into the treasury in one block. */
  of(block: Pick<EvmBlock, 'number' | 'hash'>): Promise<Arrived>;
  /**
   * The amount by which the treasury's balance grew less over the blocks than the Transfers in and out report; negative
   * if it grew more. null: the node no longer knows the balances.
   */
  missing(
    blocks: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
    out: readonly EvmLog[],
  ): Promise<MicroUsd | null>;
}

const REMEMBERED_MAX = 1_000;

/**
 * A token that takes a fee, or reports false amounts, moves less than its logs say. Then all Transfers of that block
 * are reduced in proportion, so that the credits never exceed the arrived amount. Nodes that are not archives keep only
 * the balances of the last blocks (geth: 128). For older blocks the logs are trusted, as for an honest token.
 */
export function createArrivals(node: EvmNode, asset: EvmAsset, treasury: Hex): Arrivals {
  const ofBlocks = new Map<Hex, Arrived>();

  async function missing(
    { first, last }: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
    out: readonly EvmLog[],
  ): Promise<MicroUsd | null> {
    try {
      const before = first > 0n ? await asset.balanceOf(treasury, first - 1n) : 0n;
      return sumOf(into) - sumOf(out) - ((await asset.balanceOf(treasury, last)) - before);
    } catch (error) {
      if (isPruned(error)) return null;
      throw error;
    }
  }
  return {
    missing,
    async of({ number, hash }) {
      const known = ofBlocks.get(hash);
      if (known) return known;
      const logs = (topics: readonly (Hex | null)[]) =>
        node.logs({ address: asset.address, topics, in: { blockHash: hash } });
      const into = await logs([TRANSFER, null, topicOf(treasury)]);
      const out = await logs([TRANSFER, topicOf(treasury)]);
      const gone = await missing({ first: number, last: number }, into, out);
      const all = sumOf(into);
      if (gone === null) return (said) => said;
      // Balances are requested by block number, and another machine of the node may have another block with this
      // number.
      await stillThere(node, [{ number, hash }]);
      const came = gone <= 0n || all === 0n ? all : all > gone ? all - gone : 0n;
      const arrived: Arrived = came === all ? (said) => said : (said) => (said * came) / all;
      // The result for a block hash never changes, because a replaced block has another hash.
      dropOldest(ofBlocks, REMEMBERED_MAX - 1);
      ofBlocks.set(hash, arrived);
      return arrived;
    },
  };
}

function sumOf(logs: readonly EvmLog[]): MicroUsd {
  return logs.reduce((sum, log) => sum + (transferOf(log)?.value ?? 0n), 0n);
}
