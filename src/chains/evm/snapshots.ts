import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { ChainUnavailable, type SnapshotRows } from '../chain.ts';
import type { EvmAsset } from './asset.ts';
import { cursorOf } from './cursor.ts';
import { stillThere, type EvmHeads } from './heads.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** One is taken with each look at what came in: hours of them. */
const SNAPSHOTS_MAX = 10_000;

/**
 * Balances of the treasury that were read while their blocks were the newest. A node that keeps no old state does
 * not tell them any more when such a block is final.
 */
interface Snapshots {
  /**
   * The block that a page of what came in may end with: the final one, and with a node that forgets one whose
   * balance is known here; `seen` while that is not final yet. None is later than `most`.
   */
  endOf(seen: bigint, heads: EvmHeads, most?: bigint): Promise<bigint>;
  /** The balance at a cursor whose state the node has forgotten; null where it is not known. */
  instead(cursor: string): Promise<MicroUsd | null>;
}

/** `rows` keeps them over the end of the process, and shares them with other gateways; null: neither. */
export function createSnapshots(node: EvmNode, asset: EvmAsset, treasury: Hex, rows: SnapshotRows | null): Snapshots {
  const taken = new Map<string, { readonly number: bigint; readonly balance: MicroUsd }>();
  let forgets = false;
  let isRead = rows === null;

  /** A snapshot that is there says that the node forgets, too. Rejects with the database's error. */
  async function read(): Promise<void> {
    if (isRead) return;
    const kept = await rows!.list(treasury, SNAPSHOTS_MAX);
    isRead = true;
    for (const { cursor, height, balance } of kept.toReversed()) taken.set(cursor, { number: height, balance });
    forgets ||= kept.length > 0;
  }

  /** A node that does not answer is asked again with the next page. */
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

  /** The newest that is later than one block and not later than another; null where none is. */
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
      // The next one becomes final soon, and is waited for.
      return between(end, latest.number) === null ? end : seen;
    },
    async instead(cursor) {
      await read();
      forgets = true;
      return taken.get(cursor)?.balance ?? null;
    },
  };
}
