import type { MicroUsd } from '#billing';
import type { ActRows } from './act-rows.ts';
import { PayoutUnreadable, type Chain } from './chain.ts';
import type { DepositRows } from './deposit-rows.ts';
import { plainAddress } from './plain-address.ts';
import type { TreasuryActs } from './treasury-acts.ts';
import type { Withdrawal, WithdrawalRows } from './withdrawal-rows.ts';

interface HandoverCareOptions {
  readonly acts: Pick<TreasuryActs, 'begin'>;
  readonly actRows: Pick<ActRows, 'handoverMoves'>;
  readonly withdrawalRows: Pick<WithdrawalRows, 'signed' | 'leaving'>;
  readonly depositRows: Pick<DepositRows, 'openPayments'>;
  readonly now: () => number;
}

/** The final balance of an old treasury at a height of its chain. */
interface OldBalance {
  readonly amount: MicroUsd;
  readonly height: bigint;
}

/** Empties the treasury that hands over to another, until its key can be removed. */
export interface HandoverCare {
  /**
   * Moves the money of an old treasury to the new one, by an ordinary move. The amount of signed payouts stays, because
   * anyone with their text may submit it at any time. `heldNow` resolves with null if the balance is not known.
   */
  empty(chain: Chain, heldNow: () => Promise<OldBalance | null>): Promise<void>;
  /** Whether a payment to the old treasury, or a payment that it has signed, is unfinished. */
  isUnderWay(chain: Pick<Chain, 'network' | 'payerOf'>, previous: string): Promise<boolean>;
}

/** The prefix of the ids of these moves. Ids of the operator's moves do not have it. */
export const HANDOVER_MOVE = 'handover-';
/**
 * A smaller amount is moved at most once in LITTLE_WAITS_MS. Otherwise strangers could cost the treasury gas with small
 * transfers.
 */
const LITTLE: MicroUsd = 1_000_000n;
const LITTLE_WAITS_MS = 86_400_000;

export function createHandoverCare(options: HandoverCareOptions): HandoverCare {
  const { acts, actRows, withdrawalRows, depositRows, now } = options;

  const isSame = (network: string, one: string, other: string): boolean =>
    plainAddress(network, one) === plainAddress(network, other);

  /**
   * Whether the old treasury signed a payout. A payout that cannot be read counts as signed by it: what it pays must
   * stay, and the key that signed it, too.
   */
  const isSignedBy = (previous: string, { network, payerOf }: Pick<Chain, 'network' | 'payerOf'>, of: Withdrawal) => {
    try {
      return of.signed === null || isSame(network, payerOf(of.signed), previous);
    } catch (error) {
      if (error instanceof PayoutUnreadable) return true;
      throw error;
    }
  };

  /** The sum of the old treasury's signed payouts that had not left it at a height. */
  const signedAway = async (chain: Chain, previous: string, height: bigint): Promise<MicroUsd> => {
    let sum = 0n;
    for await (const payout of all((after) => withdrawalRows.leaving(chain.network, height, after)))
      if (isSignedBy(previous, chain, payout)) sum += payout.amount - payout.fee;
    return sum;
  };

  const movesOf = (network: string, previous: string) =>
    actRows.handoverMoves(network, plainAddress(network, previous), HANDOVER_MOVE);

  return {
    async empty(chain, heldNow) {
      const { network, treasury } = chain;
      const previous = chain.handover!.previous.treasury;
      // Read before the balance: of two gateways that see the same balance, only one can make the move with this
      // number.
      const { made, underWay, newest } = await movesOf(network, previous);
      if (underWay > 0) return;
      const held = await heldNow();
      if (held === null) return;
      const amount = held.amount - (await signedAway(chain, previous, held.height));
      if (amount <= 0n || (amount < LITTLE && now() - newest < LITTLE_WAITS_MS)) return;
      await acts.begin({
        id: `${HANDOVER_MOVE}${network}-${previous}-${made + 1}`,
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
    },

    async isUnderWay(chain, previous) {
      const { network } = chain;
      if ((await movesOf(network, previous)).underWay > 0) return true;
      for await (const payout of all((after) => withdrawalRows.signed(network, after)))
        if (isSignedBy(previous, chain, payout)) return true;
      for await (const { payment } of all((after) => depositRows.openPayments(network, after)))
        if (isSame(network, payment!.requirements.payTo, previous)) return true;
      return false;
    },
  };
}

/** Yields the rows of all pages, which are sorted by id. */
async function* all<T extends Pick<Withdrawal, 'id'>>(
  pageAfter: (after: string) => Promise<readonly T[]>,
): AsyncGenerator<T> {
  for (let after = ''; ;) {
    const page = await pageAfter(after);
    yield* page;
    if (page.length === 0) return;
    after = page.at(-1)!.id;
  }
}
