import { formatUsd, type SettledFrame } from '#billing';

/**
 * The cost of a settled call for the metadata of its reply (`tollgate/generation`), on every wire that has metadata.
 * Amounts are USDC as decimal strings.
 */
export interface CostOf {
  /** The cost of the call alone. */
  readonly cost: string;
  /** The cost including all calls that were made under it; absent if there can be no such calls. */
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

/** Whether a call, or a call under it, was charged. It must then not be made again. */
export const wasCharged = ({ settlement, runCost }: Pick<SettledFrame, 'settlement' | 'runCost'>): boolean =>
  settlement.charged > 0n || (runCost ?? 0n) > 0n;
