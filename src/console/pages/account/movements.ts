import { escrowOf, type TransferRecord } from '#billing';
import { objectOf, readPage, titled, type FundPage } from '../route-schemas.ts';

/* The movements of an account's money besides calls. */

export interface MovementsDeps {
  readonly findTransfer: (id: string) => Promise<TransferRecord | null>;
  readonly movements: (
    account: string,
    before: Pick<TransferRecord, 'id' | 'at'> | null,
    limit: number,
  ) => Promise<readonly TransferRecord[]>;
}

/** The kind of a movement, by its id, or by the part of it before the first colon. */
export const KINDS: Readonly<Record<string, string>> = {
  credit: 'credit',
  debit: 'debit',
  refund: 'refund',
  close: 'closing',
  deposit: 'deposit',
  'deposit-given': 'deposit',
  withdrawal: 'withdrawal',
  'withdrawal-back': 'withdrawal_returned',
  'development-play-money': 'play_money',
};
/** Of these kinds the operator wrote the text for the owner of the account. */
export const WITH_REASON = new Set(['debit', 'refund', 'closing']);

export const movementSchema = titled(
  'Movement',
  objectOf({
    id: { type: 'string' },
    kind: {
      type: 'string',
      enum: [...new Set(Object.values(KINDS)), 'other'],
      description:
        '`credit` and `debit`: by the operator. `refund`: of a call that was charged, by the operator. `closing`: what was left when the account was closed. `deposit`, `withdrawal`: over a chain. `withdrawal_returned`: a withdrawal that was given back. `play_money`: what a development gateway begins with. `other`: any other movement.',
    },
    amount_micro_usdc: { type: 'integer', description: 'Micro-USD. Negative if it was taken from the account.' },
    reference: {
      type: ['string', 'null'],
      description: "The operator's reference of a credit or debit. Of a refund: the id of the call.",
    },
    reason: {
      type: ['string', 'null'],
      description: 'Why the operator took the money or refunded it. The operator reads the note of a credit, too.',
    },
    created_at: { type: 'string', description: 'RFC 3339' },
  }),
);

export const MOVEMENTS =
  'What came into the account and what left it, the newest first: credits, debits and refunds by the operator, deposits, withdrawals. Calls are not in this list: `/generations` has them.';

/** One page of an account's movements. `isOperator`: with the notes that operators wrote for themselves. */
export async function readMovements(
  { findTransfer, movements }: MovementsDeps,
  account: string,
  query: FundPage,
  isOperator = false,
) {
  const own = escrowOf(account);
  const entryOf = (transfer: TransferRecord) => ({ ...transfer, createdAt: transfer.at });
  const { entries, next } = await readPage(
    query,
    async (id) => {
      const transfer = await findTransfer(id);
      return transfer?.from === own || transfer?.to === own ? entryOf(transfer) : null;
    },
    async (before, limit) => {
      const place = before === null ? null : { id: before.id, at: before.createdAt };
      return (await movements(account, place, limit)).map(entryOf);
    },
  );
  return { data: entries.map((transfer) => viewMovement(transfer, own, isOperator)), next };
}

function viewMovement({ id, from, amount, memo, at }: TransferRecord, own: string, isOperator: boolean) {
  const [prefix = ''] = id.split(':', 1);
  const kind = KINDS[prefix] ?? 'other';
  return {
    id,
    kind,
    amount_micro_usdc: Number(from === own ? -amount : amount),
    reference: ['credit', 'debit', 'refund', 'closing'].includes(kind) ? id.slice(prefix.length + 1) : null,
    reason: WITH_REASON.has(kind) || (isOperator && memo !== '') ? memo : null,
    created_at: new Date(at).toISOString(),
  };
}
