import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type Deposit, useDeposits } from '../../../api/own.ts';
import { api, data } from '../../../api/client.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Money } from '../../../ui/money.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { useToast } from '../../../ui/toast.tsx';
import { OlderButton } from './older-button.tsx';
import { networkName } from './networks.ts';
import { TransactionLink } from './transaction-link.tsx';

const STATES = {
  pending: ['On its way', 'warn', 'Its chain does not have it yet.'],
  credited: ['Credited', 'good', 'In the balance. Its chain may still undo it.'],
  final: ['Final', 'good', 'In the balance for good.'],
  failed: ['Failed', 'bad', 'It did not come.'],
  reversed: ['Reversed', 'bad', 'Its chain undid it.'],
} as const satisfies Record<Deposit['status'], unknown>;

const COLUMNS: readonly Column<Deposit>[] = [
  {
    id: 'deposit',
    head: 'Deposit',
    cell: (row) => (
      <>
        <p className="font-medium">{networkName(row.network)}</p>
        <p className="text-sm text-soft">
          <Time at={row.created_at} />
        </p>
      </>
    ),
  },
  {
    id: 'state',
    head: 'State',
    cell: (row) => {
      const [word, tone, meaning] = STATES[row.status];
      return (
        <span title={row.reason ?? meaning}>
          <Badge tone={tone}>{word}</Badge>
        </span>
      );
    },
  },
  {
    id: 'transaction',
    head: 'Transaction',
    from: 'md',
    cell: (row) => <TransactionLink network={row.network} transaction={row.transaction} />,
  },
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    cell: (row) => <Money micro={row.credited_micro_usdc ?? row.amount_micro_usdc} />,
  },
];

function saidOf(credited: number): string {
  if (credited === 0) return 'Nothing is waiting for you.';
  return credited === 1 ? 'One deposit was credited to you.' : `${credited} deposits were credited to you.`;
}

/** The list of deposits over chains. */
export function Deposits(): ReactNode {
  const deposits = useDeposits();
  const queries = useQueryClient();
  const toast = useToast();
  const claim = useMutation({
    mutationFn: () => data(api.POST('/api/v1/deposits/claim')),
    onSuccess: async (found) => {
      toast(saidOf(found.length));
      await queries.invalidateQueries({ queryKey: ['deposits'] });
      await queries.invalidateQueries({ queryKey: ['balance'] });
    },
  });
  return (
    <Card
      title="Deposits"
      flush
      action={
        <Button
          size="small"
          busy={claim.isPending}
          onClick={() => claim.mutate()}
          title="Credits what your wallets sent before the gateway knew them"
        >
          Claim what I sent
        </Button>
      }
    >
      {claim.error !== null && (
        <div className="p-4">
          <ErrorNote error={claim.error} />
        </div>
      )}
      <QueryView
        query={deposits}
        loading={
          <div className="p-5">
            <Skeleton className="h-40 w-full" />
          </div>
        }
      >
        {({ pages }) => (
          <Table
            caption="Deposits"
            columns={COLUMNS}
            rows={pages.flatMap((page) => page.data)}
            rowKey={({ id }) => id}
            empty={<Empty title="No deposit yet" text="Money that you send appears here with its state." />}
          />
        )}
      </QueryView>
      <OlderButton list={deposits} text="Older deposits" />
    </Card>
  );
}
