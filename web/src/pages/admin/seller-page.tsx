import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { api, data, type Schemas } from '../../api/client.ts';
import { useSearchState } from '../../app/search.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card, Figure } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { formatShort } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { offerKey, OWN_OFFER_COLUMNS } from './offers.tsx';
import { accountPage, callPage } from './paths.ts';
import { SellerActs } from './sellers.tsx';
import { MarginOf, RangeChoice, rangeOf } from './sums.tsx';

type Seller = Schemas['OperatorProvider'];
type Failure = Seller['failures'][number];
type Payout = Seller['payouts'][number];

const START = { range: '24h' };

/** A provider: its offers, errors, earnings and payouts. */
export function SellerPage({ id }: { readonly id: string }): ReactNode {
  const [search, set] = useSearchState(START);
  const range = rangeOf(search.range);
  const seller = useQuery({
    queryKey: ['admin', 'sellers', 'one', id, range],
    queryFn: () => data(api.GET('/admin/v1/providers/{id}', { params: { path: { id }, query: { range } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  return (
    <QueryView query={seller}>
      {(found) => (
        <div className="grid gap-5">
          <Summary seller={found} />
          <Card
            title="Offers"
            flush
            action={<RangeChoice chosen={range} onChoose={(chosen) => set({ range: chosen })} />}
          >
            <Table
              caption="Offers"
              columns={OWN_OFFER_COLUMNS}
              rows={found.offers}
              rowKey={offerKey}
              empty={
                <Empty
                  title="Nothing is offered now"
                  text="Its proxy is not connected, and it had no calls in this range."
                />
              }
            />
          </Card>
          <Card title="Last errors" flush>
            <Table
              caption="Last errors"
              columns={FAILURES}
              rows={found.failures}
              rowKey={({ at, call, service }) => `${at} ${call} ${service}`}
              empty={<Empty title="No errors" text="Of this gateway since its start." />}
            />
          </Card>
          {!found.own && (
            <Card title="Payouts" flush>
              <Table
                caption="Payouts"
                columns={PAYOUTS}
                rows={found.payouts}
                rowKey={({ reference }) => reference}
                empty={
                  <Empty title="No payout was booked" text="Book what you paid it by hand with Book a payout, above." />
                }
              />
            </Card>
          )}
        </div>
      )}
    </QueryView>
  );
}

function Summary({ seller }: { readonly seller: Seller }): ReactNode {
  const { name, banned, connected, own, account } = seller;
  const sum = (
    member:
      | 'requests'
      | 'charged_micro_usdc'
      | 'margin_micro_usd'
      | 'cost_micro_usd'
      | 'unknown_cost_requests'
      | 'unknown_cost_micro_usdc',
  ) => seller.offers.reduce((all, { sums }) => all + sums[member], 0);
  const sums = {
    requests: sum('requests'),
    margin_micro_usd: sum('margin_micro_usd'),
    cost_micro_usd: sum('cost_micro_usd'),
    unknown_cost_requests: sum('unknown_cost_requests'),
    unknown_cost_micro_usdc: sum('unknown_cost_micro_usdc'),
  };
  const attempts = seller.offers.reduce((all, { attempts: { failed } }) => all + failed, 0);
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          {name ?? 'Never registered'}
          {banned !== null ? (
            <Badge tone="bad">banned</Badge>
          ) : own ? (
            <Badge>in the configuration</Badge>
          ) : (
            <Badge tone={connected === true ? 'good' : 'warn'}>{connected === true ? 'connected' : 'away'}</Badge>
          )}
        </span>
      }
      action={!own && <SellerActs seller={seller} />}
    >
      <p className="font-mono text-xs break-all text-soft">{seller.provider}</p>
      {account !== null && (
        <p className="mt-1 text-sm">
          <Link href={accountPage(account)} className="link break-all">
            {account}
          </Link>
        </p>
      )}
      {banned !== null && (
        <p className="mt-2 text-bad">
          Banned <Time at={banned.at} />: {banned.reason}
        </p>
      )}
      {seller.left_at !== null && banned === null && (
        <p className="mt-2 text-soft">
          Its proxy left <Time at={seller.left_at} />.
        </p>
      )}
      <dl className="mt-4 grid grid-cols-2 gap-6 md:grid-cols-4">
        <Figure
          name="Calls served"
          value={formatShort(sums.requests)}
          note={`${formatShort(attempts)} failed attempts`}
        />
        <Figure name="Charged" value={<Money micro={sum('charged_micro_usdc')} />} />
        <Figure name="Margin" value={<MarginOf sums={sums} />} />
        <Figure
          name={own ? 'Earnings' : 'To be paid'}
          value={<Money micro={seller.earnings_micro_usdc} />}
          note={own ? 'yours' : undefined}
        />
      </dl>
    </Card>
  );
}

const FAILURES: readonly Column<Failure>[] = [
  {
    id: 'reason',
    head: 'Error',
    cell: (row) => (
      <>
        <p className="break-words first-letter:uppercase">{row.reason}</p>
        {row.said !== null && <p className="text-sm break-words text-soft">“{row.said}”</p>}
        <p className="text-sm sm:hidden">
          <Link href={callPage(row.account, row.call)} className="link break-all">
            {row.call}
          </Link>
        </p>
      </>
    ),
  },
  { id: 'service', head: 'Service', from: 'md', cell: ({ service }) => <span className="break-words">{service}</span> },
  { id: 'status', head: 'Status', align: 'right', from: 'sm', cell: ({ status }) => status ?? '–' },
  {
    id: 'call',
    head: 'Call',
    from: 'sm',
    cell: ({ account, call }) => (
      <Link href={callPage(account, call)} className="link font-mono text-xs break-all">
        {call}
      </Link>
    ),
  },
  { id: 'at', head: 'When', align: 'right', cell: ({ at }) => <Time at={at} /> },
];

const PAYOUTS: readonly Column<Payout>[] = [
  {
    id: 'reference',
    head: 'Reference',
    cell: (row) => (
      <>
        <span className="font-medium">{row.reference}</span>
        {row.undone_at !== null && <Badge tone="warn">undone</Badge>}
        {row.note !== '' && <span className="block text-sm break-words text-soft">{row.note}</span>}
      </>
    ),
  },
  { id: 'at', head: 'Booked', from: 'sm', cell: (row) => <Time at={row.paid_at} /> },
  { id: 'amount', head: 'Amount', align: 'right', cell: (row) => <Money micro={row.amount_micro_usdc} /> },
];
