import { formatUsd, type Ledger } from '#billing';

/**
 * Makes a transfer whose money is there by the rules of the books, once. Rejects with Error where it is not: then
 * nothing may go on as if it were made.
 */
export async function makeCertain(
  ledger: Pick<Ledger, 'transfer'>,
  transfer: Parameters<Ledger['transfer']>[0],
): Promise<void> {
  const made = await ledger.transfer(transfer);
  if (made.ok || made.reason === 'duplicate') return;
  const { id, from, amount } = transfer;
  throw new Error(`transfer ${id} of ${formatUsd(amount)} USDC is not made: ${from} has ${formatUsd(made.available)}`);
}
