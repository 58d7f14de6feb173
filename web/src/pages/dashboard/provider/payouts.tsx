import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, data, type Schemas } from '../../../api/client.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Card } from '../../../ui/card.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Money } from '../../../ui/money.tsx';
import { Time } from '../../../ui/time.tsx';

/** Earnings that the operator paid outside of the gateway. */
type Payout = Schemas['Payout'];

const COLUMNS: readonly Column<Payout>[] = [
  {
    id: 'reference',
    head: 'Reference',
    cell: (row) => (
      <>
        <span className="font-medium">{row.reference}</span>
        {row.note !== '' && <p className="text-sm text-soft">{row.note}</p>}
        {row.undone_at !== null && (
          <p className="text-sm text-soft">
            <Badge tone="warn">taken back</Badge> {row.undone_reason}
          </p>
        )}
      </>
    ),
  },
  { id: 'paid', head: 'Booked', from: 'sm', cell: (row) => <Time at={row.paid_at} /> },
  { id: 'amount', head: 'Amount', align: 'right', cell: (row) => <Money micro={row.amount_micro_usdc} /> },
];

type Refund = Schemas['RefundOfProvider'];

const REFUND_COLUMNS: readonly Column<Refund>[] = [
  {
    id: 'call',
    head: 'Call',
    cell: (row) => (
      <>
        <span className="font-mono text-sm break-all">{row.call}</span>
        <p className="text-sm break-words text-soft">{row.reason}</p>
      </>
    ),
  },
  { id: 'at', head: 'Refunded', from: 'sm', cell: (row) => <Time at={row.at} /> },
  { id: 'amount', head: 'Your share', align: 'right', cell: (row) => <Money micro={-row.amount_micro_usdc} signed /> },
];

/** The calls that the operator refunded to their consumers. Nothing without one. */
export function Refunds(): ReactNode {
  const refunds = useQuery({
    queryKey: ['refunds'],
    queryFn: () => data(api.GET('/api/v1/provider/refunds', { params: { query: { limit: 100 } } })),
  });
  if (refunds.data === undefined || refunds.data.length === 0) return null;
  return (
    <Card title="Refunded calls" flush>
      <Table
        caption="Calls that the operator refunded"
        columns={REFUND_COLUMNS}
        rows={refunds.data}
        rowKey={({ call }) => call}
      />
    </Card>
  );
}

/** The payouts that the operator booked. Nothing without one. */
export function Payouts(): ReactNode {
  const payouts = useQuery({
    queryKey: ['payouts'],
    queryFn: () => data(api.GET('/api/v1/provider/payouts', { params: { query: { limit: 100 } } })),
  });
  if (payouts.data === undefined || payouts.data.length === 0) return null;
  return (
    <Card title="Paid outside of this gateway" flush>
      <Table
        caption="Payouts that the operator booked"
        columns={COLUMNS}
        rows={payouts.data}
        rowKey={({ reference }) => reference}
      />
    </Card>
  );
}
