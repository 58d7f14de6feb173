import { dropOldest } from '#wire';
import { ChainUnavailable } from '../chain.ts';
import type { SolanaNode } from './node.ts';
import type { Moment } from './node-answers.ts';
import { networkFault } from './open.ts';

/** Blocks for which a blockhash is valid (Agave: MAX_PROCESSING_AGE). */
const BLOCKHASH_BLOCKS = 150n;
/**
 * For a blockhash that the node never saw valid: how far the chain may be ahead of a node that counts itself as healthy
 * (128 slots), three times.
 */
const LAG_BLOCKS = 450n;
/**
 * By how many blocks two answers of a node may differ although they were requested in order, for example if one machine
 * of a pool is late.
 */
const POOL_BLOCKS = 150n;
/** Slots that 150 blocks may take when most leaders are offline. */
const HISTORY_SLOTS = 1_500n;
/**
 * The tolerated time between the first reading of a payment and its oldest possible block: a minute or two, and the
 * difference of the clocks.
 */
const READ_MARGIN_MS = 3_600_000;
const REMEMBERED_MAX = 10_000;

export interface Expiry {
  /**
   * Whether a transaction with this blockhash can no longer get into a block. Resolves with the final moment that
   * proves it, or null while the transaction still may. Only a status as recent as that moment is a proof.
   *
   * A payload does not say when its blockhash expires, so the time depends on the observations of this process. A hash
   * that it saw valid expires within 150 blocks. A hash that it never saw valid may be newer than the node's newest
   * block. That takes a longer wait, and the node's history must reach back to the first reading of the payment.
   */
  ofPayment(payment: { readonly blockhash: string; readonly readAt: number | null }): Promise<Moment | null>;
  /** The same for a transaction of the gateway: its last valid block height is known, and the slot of its signing. */
  ofPayout(signed: {
    readonly blockhash: string;
    readonly lastValidBlockHeight: bigint;
    readonly slot: bigint;
  }): Promise<Moment | null>;
  /** The oldest slot that may contain a payment with this blockhash; null if it is unknown. */
  since(blockhash: string): bigint | null;
}

interface FirstObservation extends Moment {
  readonly valid: boolean;
}

export function createExpiry(node: SolanaNode, network: string): Expiry {
  const seen = new Map<string, FirstObservation>();

  async function observationOf(blockhash: string): Promise<FirstObservation> {
    const known = seen.get(blockhash);
    if (known?.valid) return known;
    const tip = await node.moment('processed');
    const valid = await node.isBlockhashValid(blockhash, 'processed', tip.slot);
    if (known && !valid) return known;
    // The hash was valid at that tip or a little later, so the blocks are counted from a moment after both answers.
    const after = await node.moment('processed');
    dropOldest(seen, REMEMBERED_MAX - 1);
    const observation = { slot: tip.slot, height: after.height > tip.height ? after.height : tip.height, valid };
    seen.set(blockhash, observation);
    return observation;
  }

  /**
   * Checks that the final block is beyond `height`, that the blockhash is expired there, and that the node is healthy
   * and has enough history. Resolves with the final moment; null if a condition is not met.
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
      const { height, slot, valid } = await observationOf(blockhash);
      const wait = BLOCKHASH_BLOCKS + POOL_BLOCKS + (valid ? 0n : LAG_BLOCKS);
      return passed(blockhash, height + wait, async (oldest) => {
        if (valid || oldest <= 1n) return oldest <= historyStart(slot);
        return readAt !== null && (await node.blockTime(oldest)) <= readAt - READ_MARGIN_MS;
      });
    },
    ofPayout: ({ blockhash, lastValidBlockHeight, slot }) =>
      passed(blockhash, lastValidBlockHeight + POOL_BLOCKS, (oldest) => oldest <= historyStart(slot)),
    since(blockhash) {
      const observation = seen.get(blockhash);
      return observation?.valid ? historyStart(observation.slot) : null;
    },
  };
}

/** Refuses an answer that is older than the moment for which it is a proof. Throws ChainUnavailable. */
export function checkNotBefore(slot: bigint, moment: Moment): void {
  if (slot < moment.slot)
    throw new ChainUnavailable(
      `the Solana node answered as of slot ${slot}, after it had reported slot ${moment.slot}`,
    );
}

function historyStart(slot: bigint): bigint {
  return slot > HISTORY_SLOTS ? slot - HISTORY_SLOTS : 1n;
}
