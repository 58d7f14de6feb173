import type { MicroUsd } from '#billing';
import type { ActRows } from './act-rows.ts';
import type { Chain } from './chain.ts';
import type { TreasuryActs } from './treasury-acts.ts';
import type { WithdrawalRows } from './withdrawal-rows.ts';

interface HandoverCareOptions {
  readonly acts: Pick<TreasuryActs, 'begin'>;
  readonly actRows: Pick<ActRows, 'find'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'signed'>;
}

/**
 * Moves what an old treasury holds to the one that takes over, by a move like any other. What it has signed away
 * stays there: whoever has the text may submit it at any time.
 */
export function createHandoverCare({ acts, actRows, withdrawalRows }: HandoverCareOptions) {
  const signedAway = async (chain: Chain, previous: string): Promise<MicroUsd> => {
    let sum = 0n;
    for (let after = ''; ;) {
      const page = await withdrawalRows.signed(chain.network, after);
      if (page.length === 0) return sum;
      for (const { signed, amount, fee } of page) if (chain.payerOf(signed!) === previous) sum += amount - fee;
      after = page.at(-1)!.id;
    }
  };

  /** The id of the next move; null while one is under way. */
  const nextId = async (previous: string): Promise<string | null> => {
    for (let number = 1; ; number += 1) {
      const id = `handover-${previous}-${number}`;
      const known = await actRows.find(id);
      if (known === null) return id;
      if (known.state !== 'done' && known.state !== 'refused') return null;
    }
  };

  /** `heldNow`: the balance of the old treasury, all of it final; null where it is not known. */
  return async (chain: Chain, heldNow: () => Promise<MicroUsd | null>): Promise<void> => {
    const { network, treasury } = chain;
    const previous = chain.handover!.previous.treasury;
    // Before the balance: of two gateways that see the same balance only one makes the move of this number.
    const id = await nextId(previous);
    if (id === null) return;
    const held = await heldNow();
    const amount = (held ?? 0n) - (await signedAway(chain, previous));
    if (amount <= 0n) return;
    await acts.begin({
      id,
      kind: 'move',
      network,
      amount,
      bearer: null,
      toNetwork: network,
      address: treasury,
      sender: previous,
      feeMax: 0n,
      reference: `${previous} hands over to ${treasury}`,
    });
  };
}
