import { treasuryOf, type Ledger, type TransferRecord } from '#billing';

/** Each refusal moves one micro-USD from the one to the other. Both are treasuries, so it is nobody's money. */
const REFUSALS = treasuryOf('refusals');
const REFUSED = treasuryOf('refused');

/**
 * Takes the id of a transfer, so that the ledger never makes it. Changes nothing where the transfer was made or refused
 * before.
 */
export async function refuseTransfer(ledger: Pick<Ledger, 'transfer'>, id: string, memo: string): Promise<void> {
  await ledger.transfer({ id, from: REFUSALS, to: REFUSED, amount: 1n, memo: `${memo}: refused` });
}

/** Whether what was made of an id is its refusal. */
export const isRefusal = ({ from }: TransferRecord): boolean => from === REFUSALS;
