import { dropOldest } from '#wire';
import { ChainUnavailable } from '../chain.ts';
import type { SolanaNode } from './node.ts';
import type { Moment } from './node-answers.ts';
import { networkFault } from './open.ts';

/** Blocks for which a blockhash is valid (Agave: MAX_PROCESSING_AGE). */
const BLOCKHASH_BLOCKS = 150n;
/**
 * How far the chain may be ahead of a node that believes itself healthy (128 slots), three times over: for hashes
 * that it has never seen.
 */
const LAG_BLOCKS = 450n;
/** Blocks over which a node's two answers may be apart although it is asked in order: of one in a pool that is late. */
const POOL_BLOCKS = 150n;
/** Slots that 150 blocks may take when most leaders are away. */
const HISTORY_SLOTS = 1_500n;
/**
 * Between when a payment was read and its oldest possible block: a minute or two, and whatever the clocks differ by.
 */
const READ_MARGIN_MS = 3_600_000;
const REMEMBERED_MAX = 10_000;

export interface Expiry {
  /**
   * Whether a transaction with this blockhash can land no more: then the final moment that proves it, null while it
   * may. Only what a status says that is as new as that moment decides. A payload does not say when its blockhash
   * ends, so that it is what this process has seen: a hash that was valid then ends within 150 blocks; one that it
   * never saw valid may be newer than the node itself, which takes a long wait, and the node's history must reach
   * back to when it was first read.
   */
  ofPayment(payment: { readonly blockhash: string; readonly readAt: number | null }): Promise<Moment | null>;
  /** The same for a transaction of our own: its last valid block height is known, and the slot when it was signed. */
  ofPayout(signed: {
    readonly blockhash: string;
    readonly lastValidBlockHeight: bigint;
    readonly slot: bigint;
  }): Promise<Moment | null>;
  /** The oldest slot in which a payment with this blockhash may have landed; null where that is unknown. */
  since(blockhash: string): bigint | null;
}

interface FirstSight extends Moment {
  readonly valid: boolean;
}

export function createExpiry(node: SolanaNode, network: string): Expiry {
  const seen = new Map<string, FirstSight>();

  async function sightOf(blockhash: string): Promise<FirstSight> {
    const known = seen.get(blockhash);
    if (known?.valid) return known;
    const tip = await node.moment('processed');
    const valid = await node.isBlockhashValid(blockhash, 'processed', tip.slot);
    if (known && !valid) return known;
    // It was valid at that tip or a little later: counted from a moment after both answers.
    const after = await node.moment('processed');
    dropOldest(seen, REMEMBERED_MAX - 1);
    const sight = { slot: tip.slot, height: after.height > tip.height ? after.height : tip.height, valid };
    seen.set(blockhash, sight);
    return sight;
  }

  /**
   * Finality is beyond `height`, the hash is dead in it, and the node is one to be believed about what it does not
   * find.
   */
  async function passed(
    blockhash: string,
    height: bigint,
    remembers: (oldest: bigint) => boolean | Promise<boolean>,
  ): Promise<Moment | null> {
    const final = await node.moment('finalized');
    if (final.height <= height) return null;
    if (await node.isBlockhashValid(blockhash, 'finalized', final.slot)) return null;
    await node.checkHealth();
    const fault = await networkFault(node, network);
    if (fault !== null) throw new ChainUnavailable(fault);
    return (await remembers(await node.oldestSlot())) ? final : null;
  }

  return {
    async ofPayment({ blockhash, readAt }) {
      const { height, slot, valid } = await sightOf(blockhash);
      const wait = BLOCKHASH_BLOCKS + POOL_BLOCKS + (valid ? 0n : LAG_BLOCKS);
      return passed(blockhash, height + wait, async (oldest) => {
        if (valid || oldest <= 1n) return oldest <= historyStart(slot);
        return readAt !== null && (await node.blockTime(oldest)) <= readAt - READ_MARGIN_MS;
      });
    },
    ofPayout: ({ blockhash, lastValidBlockHeight, slot }) =>
      passed(blockhash, lastValidBlockHeight + POOL_BLOCKS, (oldest) => oldest <= historyStart(slot)),
    since(blockhash) {
      const sight = seen.get(blockhash);
      return sight?.valid ? historyStart(sight.slot) : null;
    },
  };
}

/** Refuses an answer that is older than what it is to prove. */
export function checkNotBefore(slot: bigint, moment: Moment): void {
  if (slot < moment.slot)
    throw new ChainUnavailable(`the Solana node answered as of slot ${slot}, after it had told of slot ${moment.slot}`);
}

function historyStart(slot: bigint): bigint {
  return slot > HISTORY_SLOTS ? slot - HISTORY_SLOTS : 1n;
}
