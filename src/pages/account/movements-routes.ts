import type { FastifyInstance, FastifyRequest } from 'fastify';
import { escrowOf, type TransferRecord } from '#billing';
import type { Admission } from '#gateway';
import { refuseRestricted, type KeyStore } from '#auth';
import { objectOf, titled } from '../answer-schemas.ts';
import { fundPageSchema, pageOf, readPage, type FundPage } from '../funds/fund-pages.ts';

export interface MovementsDeps {
  readonly keys: Pick<KeyStore, 'find'>;
  readonly findTransfer: (id: string) => Promise<TransferRecord | null>;
  readonly movements: (
    account: string,
    before: Pick<TransferRecord, 'id' | 'at'> | null,
    limit: number,
  ) => Promise<readonly TransferRecord[]>;
}

/** The kind of a movement, by the part of its id before the first colon. */
const KINDS: Readonly<Record<string, string>> = {
  credit: 'credit',
  debit: 'debit',
  close: 'closing',
  deposit: 'deposit',
  'deposit-given': 'deposit',
  withdrawal: 'withdrawal',
  'withdrawal-back': 'withdrawal_returned',
};
/** Of these kinds the operator wrote the text for the owner of the account. */
const WITH_REASON = new Set(['debit', 'closing']);

const movementSchema = titled(
  'Movement',
  objectOf({
    id: { type: 'string' },
    kind: {
      type: 'string',
      enum: [...new Set(Object.values(KINDS)), 'other'],
      description:
        '`credit` and `debit`: by the operator. `closing`: what was left when the account was closed. `deposit`, `withdrawal`: over a chain. `withdrawal_returned`: a withdrawal that was given back. `other`: any other movement.',
    },
    amount_micro_usdc: { type: 'integer', description: 'Micro-USD. Negative if it was taken from the account.' },
    reference: { type: ['string', 'null'], description: "The operator's reference of a credit or debit." },
    reason: { type: ['string', 'null'], description: 'Why the operator took the money.' },
    created_at: { type: 'string', description: 'RFC 3339' },
  }),
);

/** Adds `/movements`, the movements of the caller's account besides calls. `app` must already admit callers. */
export function addMovementsRoute(
  app: FastifyInstance,
  { keys, findTransfer, movements }: MovementsDeps,
  admissionOf: (request: FastifyRequest) => Admission,
): void {
  const schema = {
    summary: 'List the movements of your money',
    description:
      'What came into your account and what left it, the newest first: credits and debits by the operator, deposits, withdrawals. Calls are not in this list: `/generations` has them.',
    tags: ['Account'],
    querystring: fundPageSchema,
    response: { 200: pageOf(movementSchema) },
  };
  app.get<{ Querystring: FundPage }>('/movements', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { account, key } = admissionOf(request).caller;
    await refuseRestricted(keys, key, 'see the movements of the account');
    const own = escrowOf(account);
    const entryOf = (transfer: TransferRecord) => ({ ...transfer, createdAt: transfer.at });
    const { entries, next } = await readPage(
      request.query,
      async (id) => {
        const transfer = await findTransfer(id);
        return transfer?.from === own || transfer?.to === own ? entryOf(transfer) : null;
      },
      async (before, limit) => {
        const place = before === null ? null : { id: before.id, at: before.createdAt };
        return (await movements(account, place, limit)).map(entryOf);
      },
    );
    return { data: entries.map((transfer) => viewMovement(transfer, own)), next };
  });
}

function viewMovement({ id, from, amount, memo, at }: TransferRecord, own: string) {
  const colon = id.indexOf(':');
  const kind = KINDS[id.slice(0, colon)] ?? 'other';
  return {
    id,
    kind,
    amount_micro_usdc: Number(from === own ? -amount : amount),
    reference: ['credit', 'debit', 'closing'].includes(kind) ? id.slice(colon + 1) : null,
    reason: WITH_REASON.has(kind) ? memo : null,
    created_at: new Date(at).toISOString(),
  };
}
