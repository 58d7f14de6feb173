import { formatUsd, type Payout } from '#billing';
import { objectOf, titled } from '../answer-schemas.ts';

export const payoutSchema = titled(
  'Payout',
  objectOf({
    reference: { type: 'string', description: "The operator's name of the payment" },
    amount_micro_usdc: { type: 'integer' },
    amount_usd: { type: 'string' },
    note: { type: 'string' },
    paid_at: { type: 'string', description: 'When the operator booked it' },
    undone_at: {
      type: ['string', 'null'],
      description: 'When the operator took it back; null for a payout that holds',
    },
    undone_reason: { type: ['string', 'null'] },
  }),
);

/** A payout in the form of answers. */
export const viewPayout = ({ reference, amount, note, at, undone }: Payout) => ({
  reference,
  amount_micro_usdc: Number(amount),
  amount_usd: formatUsd(amount),
  note,
  paid_at: new Date(at).toISOString(),
  undone_at: undone === null ? null : new Date(undone.at).toISOString(),
  undone_reason: undone === null ? null : undone.reason,
});
