import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { TRANSFER, topicOf, transferOf, type EvmAsset } from './asset.ts';
import { stillThere } from './heads.ts';
import { isPruned, type EvmBlock, type EvmLog, type EvmNode } from './rpc.ts';

/** How much of what a Transfer says has arrived. */
export type Arrived = (said: MicroUsd) => MicroUsd;

/** Holds what a token says against what the treasury has. */
export interface Arrivals {
  /** For the Transfers into the treasury of one block. */
  of(block: Pick<EvmBlock, 'number' | 'hash'>): Promise<Arrived>;
  /**
   * By how much the treasury's balance grew less over blocks than Transfers in and out say; negative where it grew
   * more. null: the node no longer knows the balances.
   */
  missing(
    blocks: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
    out: readonly EvmLog[],
  ): Promise<MicroUsd | null>;
}

const REMEMBERED_MAX = 1_000;

/**
 * A token that takes a fee, or lies, moves less than its logs say: then everybody's share of that block is cut
 * alike, so that never more is credited than came. Nodes keep balances of the last blocks only (geth: 128) unless
 * they are archives: of older blocks the logs are believed, as they are of an honest token.
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
      // Balances are asked by number: another machine may have had another block there.
      await stillThere(node, [{ number, hash }]);
      const came = gone <= 0n || all === 0n ? all : all > gone ? all - gone : 0n;
      const arrived: Arrived = came === all ? (said) => said : (said) => (said * came) / all;
      // What a block moved never changes: a block that the chain exchanges has another hash.
      dropOldest(ofBlocks, REMEMBERED_MAX - 1);
      ofBlocks.set(hash, arrived);
      return arrived;
    },
  };
}

function sumOf(logs: readonly EvmLog[]): MicroUsd {
  return logs.reduce((sum, log) => sum + (transferOf(log)?.value ?? 0n), 0n);
}
