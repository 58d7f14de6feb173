import { GatewayError } from '#wire';
import { formatUsd, type AccountName, type Balance, type Ledger, type MicroUsd, type TransferRecord } from '#billing';

export interface OperatorTransferDeps {
  readonly ledger: Pick<Ledger, 'balance' | 'transfer'>;
  readonly findTransfer: (id: string) => Promise<TransferRecord | null>;
}

/** A movement of the operator. `id` is unique over all movements, for ever. */
export interface OperatorTransfer {
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
}

/** `available`: what the source has after the transfer. `duplicate`: it was made before, so nothing moved now. */
interface OperatorTransferResult {
  readonly duplicate: boolean;
  readonly available: MicroUsd;
}

/**
 * Moves money once for an id, however often it is asked for. `what` names the kind of movement for the error. Throws
 * GatewayError `idempotency_conflict` if the id belongs to another amount or other accounts, and `unprocessable` if the
 * source has too little.
 */
export async function transferOnce(
  { ledger, findTransfer }: OperatorTransferDeps,
  transfer: OperatorTransfer,
  what: string,
): Promise<OperatorTransferResult> {
  const result = await ledger.transfer(transfer);
  const { available } = result;
  if (result.ok) return { duplicate: false, available };
  if (result.reason === 'insufficient') throw tooMuch(available, await ledger.balance(transfer.from));
  const before = await findTransfer(transfer.id);
  if (!before) throw new Error(`${transfer.id} was refused: ${result.reason}`);
  if (before.from !== transfer.from || before.to !== transfer.to || before.amount !== transfer.amount)
    throw new GatewayError(
      'idempotency_conflict',
      `This reference was already used for another ${what}: ${formatUsd(before.amount)} USD from ${before.from} to ${before.to}`,
      { param: 'reference' },
    );
  return { duplicate: true, available };
}

function tooMuch(available: MicroUsd, balance: Balance | null): GatewayError {
  const locked = balance?.locked ?? 0n;
  const more =
    locked === 0n
      ? ''
      : `. Running calls have locked ${formatUsd(locked)} USD more, which cannot be taken until they end`;
  const most =
    available === 0n
      ? 'The account has no money that can be taken'
      : `At most ${formatUsd(available)} USD can be taken from this account`;
  return new GatewayError('unprocessable', `${most}${more}`, { param: 'amount_usd' });
}
