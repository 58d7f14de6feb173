import type { ReactNode } from 'react';
import { type Movement, useMovements } from '../../../api/own.ts';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Money } from '../../../ui/money.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { OlderButton } from './older-button.tsx';

const KINDS: Readonly<Record<Movement['kind'], string>> = {
  credit: 'Credited by the operator',
  debit: 'Debited by the operator',
  refund: 'Refund of a call',
  closing: 'Taken when the account was closed',
  deposit: 'Deposit',
  withdrawal: 'Withdrawal',
  withdrawal_returned: 'Withdrawal given back',
  play_money: 'Play money of this development gateway',
  other: 'Other',
};

const COLUMNS: readonly Column<Movement>[] = [
  {
    id: 'movement',
    head: 'Movement',
    cell: ({ kind, reason, reference, created_at }) => (
      <>
        <p className="font-medium">{KINDS[kind]}</p>
        {reason !== null && <p className="break-words">{reason}</p>}
        <p className="text-sm break-words text-soft">
          <Time at={created_at} />
          {reference !== null && `, reference ${reference}`}
        </p>
      </>
    ),
  },
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    cell: ({ amount_micro_usdc }) => <Money micro={amount_micro_usdc} signed />,
  },
];

/** The list of what came into the account and what left it, besides calls. */
export function Movements(): ReactNode {
  const movements = useMovements();
  return (
    <Card title="Movements besides calls" flush>
      <QueryView
        query={movements}
        loading={
          <div className="p-5">
            <Skeleton className="h-40 w-full" />
          </div>
        }
      >
        {({ pages }) => (
          <Table
            caption="Movements besides calls"
            columns={COLUMNS}
            rows={pages.flatMap((page) => page.data)}
            rowKey={({ id }) => id}
            empty={
              <Empty title="No movement yet" text="What comes into the account and what leaves it appears here." />
            }
          />
        )}
      </QueryView>
      <OlderButton list={movements} text="Older movements" />
    </Card>
  );
}
