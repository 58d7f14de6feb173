import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { ChainUnavailable, type SnapshotRows } from '../chain.ts';
import type { EvmAsset } from './asset.ts';
import { cursorOf } from './cursor.ts';
import { stillThere, type EvmHeads } from './heads.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** One snapshot is taken with each look at incoming transfers, so this covers hours. */
const SNAPSHOTS_MAX = 10_000;

/**
 * Balances of the treasury that were read while their blocks were the newest. A node without old state can no longer
 * report them when such a block is final.
 */
interface Snapshots {
  /**
   * The block with which a page of incoming transfers may end: the final block, or, if the node forgets old state, the
   * newest final block with a snapshot. It is `seen` while the next snapshot is not final yet. It is never later than
   * `most`.
   */
  endOf(seen: bigint, heads: EvmHeads, most?: bigint): Promise<bigint>;
  /** The balance at a cursor whose state the node has forgotten; null if no snapshot has it. */
  instead(cursor: string): Promise<MicroUsd | null>;
}

/** `rows` stores the snapshots beyond the process and shares them with other gateways; null: in memory only. */
export function createSnapshots(node: EvmNode, asset: EvmAsset, treasury: Hex, rows: SnapshotRows | null): Snapshots {
  const taken = new Map<string, { readonly number: bigint; readonly balance: MicroUsd }>();
  let forgets = false;
  let isRead = rows === null;

  /** Reads the stored snapshots. If one exists, the node forgets old state. Rejects with the database's error. */
  async function read(): Promise<void> {
    if (isRead) return;
    const kept = await rows!.list(treasury, SNAPSHOTS_MAX);
    isRead = true;
    for (const { cursor, height, balance } of kept.toReversed()) taken.set(cursor, { number: height, balance });
    forgets ||= kept.length > 0;
  }

  /** Takes a snapshot of the newest block. If the node does not answer, the next page tries again. */
  async function take(latest: EvmBlock, seen: bigint): Promise<void> {
    const cursor = cursorOf(latest);
    if (taken.has(cursor)) return;
    try {
      const balance = await asset.balanceOf(treasury, latest.number);
      await stillThere(node, [latest]);
      dropOldest(taken, SNAPSHOTS_MAX - 1);
      taken.set(cursor, { number: latest.number, balance });
      await rows?.keep(treasury, { cursor, height: latest.number, balance });
      await rows?.forget(treasury, seen);
    } catch (error) {
      if (!(error instanceof ChainUnavailable)) throw error;
    }
  }

  /** The newest snapshot after block `after` and up to block `upTo`; null if no such snapshot exists. */
  function between(after: bigint, upTo: bigint): bigint | null {
    let newest: bigint | null = null;
    for (const { number } of taken.values())
      if (number > after && number <= upTo && (newest === null || number > newest)) newest = number;
    return newest;
  }

  return {
    async endOf(seen, { latest, final }, most = final.number) {
      await read();
      const end = most < final.number ? most : final.number;
      if (!forgets) return end;
      await take(latest, seen);
      const known = between(seen, end);
      if (known !== null) return known;
      // A later snapshot becomes final soon, so the page waits for it.
      return between(end, latest.number) === null ? end : seen;
    },
    async instead(cursor) {
      await read();
      forgets = true;
      return taken.get(cursor)?.balance ?? null;
    },
  };
}
