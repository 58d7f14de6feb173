import { formatUsd, type SettledFrame } from '#billing';

/**
 * The cost of a settled call in the metadata of its reply, on every wire that has a place for it
 * (`tollgate/generation`). Amounts are USDC as decimal texts.
 */
export interface CostOf {
  /** The call's own. */
  readonly cost: string;
  /** With all calls that were made under it; absent where there could be none. */
  readonly run_cost?: string;
  readonly currency: 'USDC';
}

export function costOf({ settlement, runCost }: Pick<SettledFrame, 'settlement' | 'runCost'>): CostOf {
  return {
    cost: formatUsd(settlement.charged),
    ...(runCost === undefined ? {} : { run_cost: formatUsd(runCost) }),
    currency: 'USDC',
  };
}

/** Whether a call, or one that was made under it, was charged: then it must not be made again. */
export const wasCharged = ({ settlement, runCost }: Pick<SettledFrame, 'settlement' | 'runCost'>): boolean =>
  settlement.charged > 0n || (runCost ?? 0n) > 0n;
