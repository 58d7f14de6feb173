import { formatUsd, treasuryOf, type AccountName, type Ledger, type TransferRecord, type MicroUsd } from '#billing';

/** The balance of a treasury and its balance in the books, at one height of its chain. */
export interface Reserves {
  readonly network: string;
  readonly held: MicroUsd;
  readonly booked: MicroUsd;
  readonly height: bigint;
}

/* The accounts of the ledger for money on chains, and the transfers between them. */

/**
 * The account of losses that nobody has paid for yet: a chain undid money that was already spent, it was written off,
 * or it was deducted on the way between treasuries.
 */
export const LOSSES: AccountName = treasuryOf('losses');

/** The account of money on its way from one treasury to another. */
export const TRANSIT: AccountName = treasuryOf('transit');
export const TRANSIT_ACCOUNT = 'tollgate:transit';

/** The ledger account of outgoing money: it was taken from its account and is still in the treasury. */
export const outgoingOf = (network: string): AccountName => `outgoing:${network}`;

/**
 * Makes a transfer once. By the rules of the books its money is always available. Rejects with Error if it is not, so
 * that no caller goes on as if the transfer were made.
 */
export async function makeCertain(
  ledger: Pick<Ledger, 'transfer'>,
  transfer: Parameters<Ledger['transfer']>[0],
): Promise<void> {
  const result = await ledger.transfer(transfer);
  if (result.ok || result.reason === 'duplicate') return;
  const { id, from, amount } = transfer;
  throw new Error(
    `transfer ${id} of ${formatUsd(amount)} USDC is not made: ${from} has ${formatUsd(result.available)}`,
  );
}

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

export const isRefusal = ({ from }: TransferRecord): boolean => from === REFUSALS;
