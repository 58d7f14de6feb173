import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, call } from '../../api/client.ts';
import type { Movement } from '../../api/own.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { ACCOUNTS } from './account.ts';

const KINDS: Readonly<Record<Movement['kind'], string>> = {
  credit: 'Credit',
  debit: 'Debit',
  refund: 'Refund of a call',
  closing: 'Taken at the close',
  deposit: 'Deposit',
  withdrawal: 'Withdrawal',
  withdrawal_returned: 'Withdrawal given back',
  play_money: 'Play money',
  other: 'Other',
};

const columnsOf = (pageOf: (call: string) => string): readonly Column<Movement>[] => [
  {
    id: 'movement',
    head: 'Movement',
    cell: ({ kind, reason, reference, created_at: at }) => (
      <>
        <span className="font-medium">{KINDS[kind]}</span>
        {reason !== null && <span className="block break-words">{reason}</span>}
        {reference !== null &&
          (kind === 'refund' ? (
            <Link href={pageOf(reference)} className="link block font-mono text-xs break-all">
              {reference}
            </Link>
          ) : (
            <span className="block text-sm break-words text-soft">{reference}</span>
          ))}
        <span className="block text-sm text-soft sm:hidden">
          <Time at={at} />
        </span>
      </>
    ),
  },
  { id: 'at', head: 'When', align: 'right', from: 'sm', cell: (row) => <Time at={row.created_at} /> },
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    cell: ({ amount_micro_usdc: micro }) => <Money micro={micro} signed />,
  },
];

const PAGE = 10;
const FIRST_PAGE: { readonly before?: string } = {};

/** The credits, debits and refunds of an account, and its deposits and withdrawals. */
export function AccountMovements({
  id,
  pageOf,
}: {
  readonly id: string;
  readonly pageOf: (call: string) => string;
}): ReactNode {
  const movements = useInfiniteQuery({
    queryKey: [...ACCOUNTS, 'movements', id],
    queryFn: ({ pageParam }) =>
      call(
        api.GET('/admin/v1/accounts/{id}/movements', {
          params: { path: { id }, query: { limit: PAGE, ...pageParam } },
        }),
      ),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next }) => (next === null ? null : { before: next }),
  });
  return (
    <Card title="Credits, debits and refunds" flush>
      <QueryView query={movements}>
        {({ pages }) => (
          <Table
            caption="Credits, debits and refunds"
            columns={columnsOf(pageOf)}
            rows={pages.flatMap((page) => page.data)}
            rowKey={(row) => row.id}
            empty={<Empty title="No movement" text="No money came in or left besides calls." />}
          />
        )}
      </QueryView>
      {movements.hasNextPage && (
        <div className="flex justify-center border-t border-line py-3">
          <Button busy={movements.isFetchingNextPage} onClick={() => void movements.fetchNextPage()}>
            Older movements
          </Button>
        </div>
      )}
    </Card>
  );
}
