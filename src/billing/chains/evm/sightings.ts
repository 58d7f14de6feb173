import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { ChainUnavailable, type ChainEvent, type PaymentSighting, type PayoutSighting } from '../chain.ts';
import { createArrivals, logsOfTransaction, unlessTooLong } from './transfers.ts';
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
  carriedOut,
  topicOf,
  type Authorization,
  type EvmAsset,
} from './asset.ts';
import { type EvmHeads, createSharedPolls } from './blocks.ts';
import { findNewestLog, type RangeReader, type SearchedBlocks } from './log-search.ts';
import { VALID_SECONDS_MAX } from './payment.ts';
import type { EvmLog, EvmNode } from './rpc.ts';

/** The tolerated difference between the clocks of payers, this machine and block producers. */
const CLOCK_SECONDS = 3600n;
const REMEMBERED_MAX = 10_000;

export interface SightingSetup {
  readonly node: EvmNode;
  readonly asset: EvmAsset;
  /** The address in lower case. */
  readonly treasury: Hex;
  readonly finality: number | null;
  readonly reader: RangeReader;
}

/** Finds authorizations on the chain: payments to the treasury, and payouts of the treasury. */
interface EvmSightings {
  ofPayment(authorization: Authorization, hint: string | null): Promise<PaymentSighting>;
  /** `signedAt` is in epoch seconds. */
  ofPayout(authorization: Authorization, signedAt: bigint, hint: string | null): Promise<PayoutSighting>;
}

/** An authorization on the chain. `mark`: the log of its use or cancellation. */
type Located =
  | { readonly state: 'unused'; readonly heads: EvmHeads }
  | {
      readonly state: 'used' | 'cancelled';
      readonly heads: EvmHeads;
      readonly mark: EvmLog;
      readonly logs: readonly EvmLog[];
      readonly final: boolean;
    };

export function createEvmSightings(setup: SightingSetup): EvmSightings {
  const { node, asset, treasury, finality, reader } = setup;
  const arrivals = createArrivals(node, asset, treasury);
  const shared = createSharedPolls(node, finality);
  /** The logs of used authorizations. An entry is valid while its block is part of the chain. */
  const used = new Map<string, Pick<Extract<Located, { state: 'used' | 'cancelled' }>, 'mark' | 'logs'>>();
  /** How far the logs of authorizations were searched in vain. */
  const searched = new Map<string, SearchedBlocks>();

  async function locate(authorization: Authorization, notBefore: bigint, hint: string | null): Promise<Located> {
    const heads = await shared.heads();
    const { from, nonce } = authorization;
    const key = `${from}/${nonce}`;
    const known = used.get(key);
    if (known && known.mark.block <= heads.latest.number) {
      const stands = await shared.stillThere([{ number: known.mark.block, hash: known.mark.blockHash }]).then(
        () => true,
        () => false,
      );
      if (stands) return { ...stateOf(known.mark, heads), ...known };
      used.delete(key);
    }
    // The request names the block by its number. A machine that is behind then refuses; for "latest" it would answer
    // with an old state.
    if (!(await asset.authorizationState(from, nonce, heads.latest.number))) {
      await shared.stillThere([heads.final, heads.latest]);
      return { state: 'unused', heads };
    }
    const mark = await markOf(authorization, notBefore, heads, hint);
    const logs = await logsOfTransaction({ node, asset: asset.address, payee: authorization.to, log: mark });
    if (mark.block > heads.latest.number)
      throw new ChainUnavailable(`Block ${mark.block} is newer than what the node calls its newest`);
    await shared.stillThere([{ number: mark.block, hash: mark.blockHash }]);
    dropOldest(used, REMEMBERED_MAX - 1);
    used.set(key, { mark, logs });
    return { ...stateOf(mark, heads), mark, logs };
  }

  async function markOf(
    authorization: Authorization,
    notBefore: bigint,
    heads: EvmHeads,
    hint: string | null,
  ): Promise<EvmLog> {
    const { from, nonce, validBefore } = authorization;
    const topics = [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], topicOf(from), nonce] as const;
    const isMark = (log: EvmLog): boolean =>
      log.address === asset.address.toLowerCase() &&
      topics[0].some((one) => one === log.topics[0]) &&
      log.topics[1] === topics[1] &&
      log.topics[2] === nonce;
    if (hint !== null && /^0x[0-9a-f]{64}$/i.test(hint)) {
      const receipt = await unlessTooLong(node.receipt(hint as Hex));
      const mark = receipt === 'too long' ? undefined : receipt?.logs.find(isMark);
      if (mark) return mark;
    }
    // An authorization can be cancelled even after it has expired, but such a late cancellation does not matter here.
    const key = `${from}/${nonce}`;
    const mark = await findNewestLog(node, reader, heads, {
      address: asset.address,
      topics,
      notBefore,
      notAfter: validBefore + VALID_SECONDS_MAX,
      searched: searched.get(key) ?? null,
      note(blocks) {
        searched.delete(key);
        dropOldest(searched, REMEMBERED_MAX - 1);
        searched.set(key, blocks);
      },
    });
    if (!mark) {
      // The node may have left out the log of blocks that were searched, so the next search begins anew.
      searched.delete(key);
      throw new ChainUnavailable(
        `The authorization ${nonce} of ${from} was used up, but the node shows no log of that`,
      );
    }
    return mark;
  }

  return {
    async ofPayment(authorization, hint) {
      const located = await locate(authorization, authorization.validBefore - VALID_SECONDS_MAX - CLOCK_SECONDS, hint);
      if (located.state === 'unused') return seenUnused(authorization, located.heads);
      const { heads, mark, logs, final } = located;
      const gone = (reason: string): PaymentSighting => (final ? { state: 'lost', reason } : { state: 'open' });
      if (located.state === 'cancelled') return gone(`Its payer cancelled it in transaction ${mark.transaction}`);
      const done = carriedOut(logs, asset.address, treasury).find(({ index }) => index === mark.index);
      if (!done?.transfer)
        return gone(
          `Its authorization was used up in transaction ${mark.transaction}, which pays nothing to ${treasury}`,
        );
      const { log, value } = done.transfer;
      const amount = (await arrivals.conversionOf({ number: mark.block, hash: mark.blockHash }))(value);
      if (amount === 0n) return gone(`Transaction ${mark.transaction} says that it pays, but nothing arrived`);
      return { state: 'settled', event: chainEvent(log, amount, heads, final) };
    },

    async ofPayout(authorization, signedAt, hint) {
      const located = await locate(authorization, signedAt - CLOCK_SECONDS, hint);
      if (located.state === 'unused') return seenUnused(authorization, located.heads);
      const { mark, logs, final } = located;
      const gone = (reason: string): PayoutSighting => (final ? { state: 'lost', reason } : { state: 'open' });
      if (located.state === 'cancelled')
        return gone(`The treasury's key cancelled it in transaction ${mark.transaction}`);
      const done = carriedOut(logs, asset.address, authorization.to).find(({ index }) => index === mark.index);
      if (done?.transfer?.value !== authorization.value)
        return gone(`Its authorization was used up in transaction ${mark.transaction}, which does not pay it`);
      return { state: 'paid', transaction: mark.transaction, final, height: mark.block };
    },
  };
}

/**
 * An authorization that is unused in the newest block is unused in all earlier blocks. Block times never go back. So
 * when the final block is as late as the end of the authorization, no later block can execute it.
 */
function seenUnused(
  authorization: Authorization,
  heads: EvmHeads,
): { readonly state: 'open' } | { readonly state: 'lost'; readonly reason: string } {
  if (heads.final.timestamp < authorization.validBefore) return { state: 'open' };
  return {
    state: 'lost',
    reason: `It was valid before ${new Date(Number(authorization.validBefore) * 1000).toISOString()}, and no block until then has it`,
  };
}

const stateOf = (mark: EvmLog, heads: EvmHeads) =>
  ({
    state: mark.topics[0] === AUTHORIZATION_USED ? 'used' : 'cancelled',
    heads,
    final: mark.block <= heads.final.number,
  }) as const;

export function chainEvent(log: EvmLog, amount: MicroUsd, heads: EvmHeads, final: boolean): ChainEvent {
  return {
    id: `${log.transaction}:${log.index}`,
    transaction: log.transaction,
    amount,
    height: log.block,
    confirmations: Number(heads.latest.number - log.block) + 1,
    final,
  };
}
