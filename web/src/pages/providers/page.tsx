import { useMemo, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { providerPath, useProviders, type Provider } from '../../api/catalogue.ts';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Heading } from '../../ui/heading.tsx';
import { Initials } from '../../ui/initials.tsx';
import { KIND_NAMES } from '../../ui/kind.tsx';
import { formatNumber, formatShare } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Status } from '../../ui/status.tsx';
import { Table, type Column, type Sorting } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const COLUMNS: readonly Column<Provider>[] = [
  {
    id: 'name',
    head: 'Provider',
    width: 'w-full max-w-0',
    sort: ({ name }) => name.toLowerCase(),
    cell: ({ id, name }) => (
      <span className="flex min-w-0 items-center gap-2 sm:gap-3">
        <Initials name={name} />
        <span className="min-w-0 leading-5">
          <Link href={providerPath(id)} className="block truncate font-semibold hover:underline">
            {name}
          </Link>
          <span className="block truncate font-mono text-xs leading-5 text-soft">{id}</span>
        </span>
      </span>
    ),
  },
  {
    id: 'kinds',
    head: 'Offers',
    from: 'lg',
    cell: ({ primitives }) => (
      <span className="block w-max max-w-44 text-sm text-soft">
        {primitives.map((kind) => KIND_NAMES[kind].many.toLowerCase()).join(', ')}
      </span>
    ),
  },
  {
    id: 'services',
    head: 'Services',
    align: 'right',
    sort: ({ services }) => services,
    cell: ({ services }) => formatNumber(services),
  },
  {
    id: 'requests',
    head: 'Calls, 1 h',
    align: 'right',
    from: 'md',
    sort: ({ requests }) => requests,
    cell: ({ requests }) => formatNumber(requests),
  },
  {
    id: 'uptime',
    head: 'Uptime, 1 h',
    align: 'right',
    from: 'sm',
    sort: ({ uptime }) => uptime,
    cell: ({ uptime }) => (uptime === null ? <span className="text-soft">–</span> : formatShare(uptime)),
  },
  {
    id: 'status',
    head: 'Status',
    from: 'sm',
    sort: ({ status }) => status,
    cell: ({ status, uptime }) => <Status status={status} uptime={uptime} />,
  },
  {
    id: 'since',
    head: 'Since',
    align: 'right',
    from: 'md',
    sort: ({ listed_since }) => listed_since,
    cell: ({ listed_since }) => (
      <span className="inline-block w-max text-sm text-soft">
        <Time at={listed_since} />
      </span>
    ),
  },
];

export default function ProvidersPage(): ReactNode {
  const providers = useProviders();
  const [sorting, setSorting] = useState<Sorting>({ column: 'name', down: false });
  const columns = useMemo(() => COLUMNS, []);
  return (
    <>
      <Heading
        title="Providers"
        lead="Who serves the services of this gateway. A provider is known by its public key, and earns by the call."
      />
      <QueryView query={providers}>
        {(all) => (
          <Card flush>
            <Table
              caption="Providers"
              columns={columns}
              rows={all}
              rowKey={({ id }) => id}
              sorting={sorting}
              onSort={setSorting}
              empty={
                <Empty
                  title="There is no provider yet."
                  text="Anybody with a wallet can offer a model, a tool or an agent with one command: tollgate provide."
                />
              }
            />
          </Card>
        )}
      </QueryView>
    </>
  );
}
