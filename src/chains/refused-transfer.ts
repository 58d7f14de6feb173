import { treasuryOf, type Ledger, type TransferRecord } from '#billing';

/** Each refusal moves one micro-USD from REFUSALS to REFUSED. Both are treasuries, so no user's money moves. */
const REFUSALS = treasuryOf('refusals');
const REFUSED = treasuryOf('refused');

/**
 * Uses the id of a transfer for a refusal, so that the ledger never makes the transfer. Changes nothing if the transfer
 * was already made or refused.
 */
export async function refuseTransfer(ledger: Pick<Ledger, 'transfer'>, id: string, memo: string): Promise<void> {
  await ledger.transfer({ id, from: REFUSALS, to: REFUSED, amount: 1n, memo: `${memo}: refused` });
}

/** Whether a transfer is a refusal. */
export const isRefusal = ({ from }: TransferRecord): boolean => from === REFUSALS;
