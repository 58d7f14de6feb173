import { useMemo, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { ApiError } from '../../api/api-error.ts';
import { servicePath, useProvider, type Pricing, type ProviderDetail, type HealthState } from '../../api/catalogue.ts';
import { NotFound } from '../../app/not-found.tsx';
import { useTitle } from '../../app/title.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Heading } from '../../ui/heading.tsx';
import { KindTile, type Kind } from '../../ui/kind.tsx';
import { formatCalls, formatShare } from '../../ui/number.ts';
import { Price } from '../../ui/price.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { Status } from '../../ui/status.tsx';
import { Table, type Column, type Sorting } from '../../ui/table.tsx';
import { formatDuration, Time } from '../../ui/time.tsx';

export default function ProviderPage({ params }: { readonly params: Readonly<Record<string, string>> }): ReactNode {
  const query = useProvider(params['*'] ?? '');
  if (query.error instanceof ApiError && query.error.status === 404)
    return (
      <NotFound title="There is no provider of this key." text="It may be mistyped, or offers nothing any more." />
    );
  return <QueryView query={query}>{(provider) => <Detail provider={provider} />}</QueryView>;
}

/** A service at one of its routes. */
interface Row extends HealthState {
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly primitive: Kind;
  readonly pricing: Pricing;
}

function Detail({ provider }: { readonly provider: ProviderDetail }): ReactNode {
  const { id, name, listings, status, reached, listed_since, uptime, requests, flags } = provider;
  useTitle(name);
  const [sorting, setSorting] = useState<Sorting>({ column: 'name', down: false });
  const rows = useMemo(
    () =>
      listings.flatMap(({ doors, name: service, display_name, description }) =>
        doors.map((door): Row => ({ ...door, name: service, display_name, description })),
      ),
    [listings],
  );
  const raised = Object.entries(flags);
  return (
    <>
      <Heading
        title={name}
        above={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Link href="/providers" className="font-medium hover:underline">
              Provider
            </Link>
            <span className="flex min-w-0 items-center gap-1">
              <span className="min-w-0 font-mono text-sm break-all">{id}</span>
              <Copy text={id} label="Copy the public key" />
            </span>
          </span>
        }
      />
      <ul className="-mt-3 mb-7 flex flex-wrap items-center gap-x-6 gap-y-2 text-sm text-soft">
        <li className="text-ink">
          <Status status={status} uptime={uptime} />
        </li>
        <li>{requests === 0 ? 'No calls in the last hour' : `${formatCalls(requests)} in the last hour`}</li>
        {uptime !== null && <li>{formatShare(uptime)} up in the last hour</li>}
        <li>{reached === 'tunnel' ? 'Connected by its own proxy' : 'Reached by its address'}</li>
        <li>
          Listed <Time at={listed_since} />
        </li>
        {raised.map(([flag, count]) => (
          <li key={flag}>
            <Badge tone="warn">
              {flag.replaceAll('_', ' ')} ×{count}
            </Badge>
          </li>
        ))}
      </ul>
      <Card title={`Services (${rows.length})`} flush>
        <Table
          caption={`Services of ${name}`}
          columns={COLUMNS}
          rows={rows}
          rowKey={({ primitive, name: service }) => `${primitive}/${service}`}
          sorting={sorting}
          onSort={setSorting}
        />
      </Card>
    </>
  );
}

const none = <span className="text-soft">–</span>;

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    head: 'Service',
    width: 'w-full max-w-0',
    sort: ({ name }) => name,
    cell: (row) => (
      <span className="flex min-w-0 items-center gap-2 sm:gap-3">
        <KindTile kind={row.primitive} />
        <span className="min-w-0 leading-5">
          <Link href={servicePath(row)} className="row-link block truncate font-semibold hover:underline">
            {row.display_name}
          </Link>
          <span className="block truncate font-mono text-xs leading-5 text-soft">{row.name}</span>
        </span>
      </span>
    ),
  },
  {
    id: 'status',
    head: 'Status',
    from: 'sm',
    cell: (row) => <Status status={row.status} uptime={row.uptime_last_1h} />,
  },
  {
    id: 'first-byte',
    head: 'First byte, p50',
    align: 'right',
    from: 'md',
    sort: ({ latency }) => latency?.p50 ?? null,
    cell: ({ latency }) => (latency ? formatDuration(latency.p50) : none),
  },
  {
    id: 'uptime',
    head: 'Uptime, 1 h',
    align: 'right',
    from: 'md',
    sort: ({ uptime_last_1h }) => uptime_last_1h,
    cell: ({ uptime_last_1h }) => (uptime_last_1h === null ? none : formatShare(uptime_last_1h)),
  },
  {
    id: 'price',
    head: 'Price',
    align: 'right',
    cell: ({ primitive, pricing }) => <Price kind={primitive} pricing={pricing} />,
  },
];
