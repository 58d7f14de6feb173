import { formatUsd, type Ledger } from '#billing';

/**
 * Makes a transfer once. By the rules of the books its money is always available. Rejects with Error if it is not, so
 * that no caller goes on as if the transfer were made.
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
