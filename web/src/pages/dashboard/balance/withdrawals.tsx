import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { type Chain, useWithdrawals, type Withdrawal } from '../../../api/own.ts';
import { api, call } from '../../../api/client.ts';
import type { Session } from '../../../api/session.ts';
import { AccountName } from '../../../account/account-name.tsx';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Money } from '../../../ui/money.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { OlderButton } from './older-button.tsx';
import { networkName } from './networks.ts';
import { TransactionLink } from './transaction-link.tsx';
import { WITHDRAWAL_STATES } from './withdrawal-states.ts';
import { WithdrawForm } from './withdraw-form.tsx';

/** The list of withdrawals over chains, and the form for a new one. */
export function Withdrawals({
  chains,
  session,
}: {
  readonly chains: readonly Chain[];
  readonly session: Session;
}): ReactNode {
  const withdrawals = useWithdrawals();
  const [asking, setAsking] = useState(false);
  const queries = useQueryClient();
  const cancel = useMutation({
    mutationFn: ({ id }: Withdrawal) => call(api.POST('/api/v1/withdrawals/{id}/cancel', { params: { path: { id } } })),
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey: ['withdrawals'] });
      await queries.invalidateQueries({ queryKey: ['balance'] });
    },
  });
  const columns: readonly Column<Withdrawal>[] = [
    {
      id: 'withdrawal',
      head: 'Withdrawal',
      cell: (row) => (
        <>
          <p className="font-medium">
            {networkName(row.network)} <span className="font-normal text-soft">to</span>{' '}
            <AccountName account={row.address} />
          </p>
          <p className="text-sm text-soft">
            <Time at={row.created_at} />
            {row.source === 'earnings' ? ', from earnings' : ''}
          </p>
        </>
      ),
    },
    {
      id: 'state',
      head: 'State',
      cell: (row) => (
        <span className="flex flex-wrap items-center gap-2" {...(row.reason === null ? {} : { title: row.reason })}>
          <Badge tone={WITHDRAWAL_STATES[row.status][1]}>{WITHDRAWAL_STATES[row.status][0]}</Badge>
          {row.status === 'pending' && (
            <Button size="small" busy={cancel.isPending} onClick={() => cancel.mutate(row)}>
              Cancel
            </Button>
          )}
        </span>
      ),
    },
    {
      id: 'transaction',
      head: 'Transaction',
      from: 'md',
      cell: (row) => <TransactionLink network={row.network} transaction={row.transaction} />,
    },
    { id: 'amount', head: 'Amount', align: 'right', cell: (row) => <WithdrawnAmount row={row} /> },
  ];
  return (
    <Card
      title="Withdrawals"
      flush
      action={
        <Button size="small" onClick={() => setAsking(true)}>
          Withdraw
        </Button>
      }
    >
      {cancel.error !== null && (
        <div className="p-4">
          <ErrorNote error={cancel.error} />
        </div>
      )}
      <QueryView
        query={withdrawals}
        loading={
          <div className="p-5">
            <Skeleton className="h-40 w-full" />
          </div>
        }
      >
        {({ pages }) => (
          <Table
            caption="Withdrawals"
            columns={columns}
            rows={pages.flatMap((page) => page.data)}
            rowKey={({ id }) => id}
            empty={
              <Empty title="No withdrawal yet" text="What you do not use can be paid to your wallet at any time." />
            }
          />
        )}
      </QueryView>
      <OlderButton list={withdrawals} text="Older withdrawals" />
      <Dialog title="Withdraw" open={asking} onClose={() => setAsking(false)}>
        <WithdrawForm chains={chains} session={session} onDone={() => setAsking(false)} />
      </Dialog>
    </Card>
  );
}

/** The amount that left the balance, and the part of it that the address gets. */
function WithdrawnAmount({ row }: { readonly row: Withdrawal }): ReactNode {
  return (
    <>
      <Money micro={row.amount_micro_usdc} />
      {row.pays_micro_usdc !== row.amount_micro_usdc && (
        <p className="text-sm text-soft">
          <Money micro={row.pays_micro_usdc} /> after the fee
        </p>
      )}
    </>
  );
}
