import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { type Provider, useProviders } from '../../api/catalogue.ts';
import { flagName, flagText } from '../../calls/flags.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { formatNumber, formatShare } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Status } from '../../ui/status.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useSearchState } from '../../app/search.ts';
import { FromTop } from './from-top.tsx';
import { sellerPage } from './paths.ts';
import { SellerPage } from './seller-page.tsx';
import { Sellers } from './sellers.tsx';

const COLUMNS: readonly Column<Provider>[] = [
  {
    id: 'provider',
    head: 'Provider',
    cell: (row) => (
      <>
        <Link href={sellerPage(row.id)} className="font-medium hover:underline">
          {row.name}
        </Link>
        <p className="text-sm text-soft">{row.reached === 'direct' ? 'in the configuration' : 'dialled in'}</p>
      </>
    ),
  },
  {
    id: 'status',
    head: 'Status',
    cell: ({ status, uptime }) => <Status status={status} uptime={uptime} />,
  },
  { id: 'services', head: 'Services', align: 'right', from: 'sm', cell: (row) => formatNumber(row.services) },
  { id: 'requests', head: 'Calls, 1 hour', align: 'right', from: 'md', cell: (row) => formatNumber(row.requests) },
  {
    id: 'uptime',
    head: 'Uptime',
    align: 'right',
    from: 'sm',
    cell: (row) => (row.uptime === null ? '–' : formatShare(row.uptime)),
  },
  {
    id: 'flags',
    head: 'Flags',
    align: 'right',
    cell: (row) => <Flags of={row} />,
  },
  {
    id: 'since',
    head: 'Since',
    from: 'lg',
    cell: (row) => <Time at={row.listed_since} />,
  },
];

/** Numbers of replies that broke a rule, by rule. */
function Flags({ of }: { readonly of: Provider }): ReactNode {
  const broken = Object.entries(of.flags).filter(([, count]) => count > 0);
  if (broken.length === 0) return '–';
  return (
    <ul className="grid gap-0.5 text-sm">
      {broken.map(([flag, count]) => (
        <li key={flag}>
          <span className="text-soft" title={flagText(flag)}>
            {flagName(flag)}
          </span>{' '}
          {formatNumber(count)}
        </li>
      ))}
    </ul>
  );
}

const START = { provider: '' };

/** All providers of this gateway, or the one that the address names. */
export default function Providers(): ReactNode {
  const [{ provider }] = useSearchState(START);
  if (provider === '') return <AllProviders />;
  return (
    <>
      <p className="mb-4">
        <Link href="/admin?tab=providers" className="link">
          All providers
        </Link>
      </p>
      <FromTop key={provider}>
        <SellerPage id={provider} />
      </FromTop>
    </>
  );
}

function AllProviders(): ReactNode {
  const providers = useProviders();
  return (
    <div className="grid gap-5">
      <Card title="Providers" flush>
        <QueryView query={providers}>
          {(rows) => (
            <Table
              caption="Providers"
              columns={COLUMNS}
              rows={rows}
              rowKey={({ id }) => id}
              empty={
                <Empty
                  title="Nobody serves"
                  text="Add services to the configuration file, or let a provider dial in."
                />
              }
            />
          )}
        </QueryView>
      </Card>
      <Sellers />
    </div>
  );
}
