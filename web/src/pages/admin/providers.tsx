import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { data } from '../../api/request.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { formatNumber, formatShare } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

interface Provider {
  readonly id: string;
  readonly name: string;
  readonly services: number;
  readonly status: string;
  readonly reached: string;
  readonly listed_since: string | null;
  readonly uptime: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
}

const flagsOf = ({ flags }: Provider) => Object.values(flags).reduce((sum, count) => sum + count, 0);

const COLUMNS: readonly Column<Provider>[] = [
  {
    id: 'provider',
    head: 'Provider',
    cell: (row) => (
      <>
        <Link href={`/providers/${encodeURIComponent(row.id)}`} className="font-medium hover:underline">
          {row.name}
        </Link>
        <p className="text-sm text-soft">{row.reached === 'direct' ? 'in the configuration' : 'dialled in'}</p>
      </>
    ),
  },
  {
    id: 'status',
    head: 'Status',
    cell: (row) => <Badge tone={row.status === 'healthy' ? 'good' : 'warn'}>{row.status}</Badge>,
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
    cell: (row) => (flagsOf(row) === 0 ? '–' : formatNumber(flagsOf(row))),
  },
  {
    id: 'since',
    head: 'Since',
    from: 'lg',
    cell: (row) => (row.listed_since === null ? '–' : <Time at={row.listed_since} />),
  },
];

/** Everybody who serves here. */
export function Providers(): ReactNode {
  const providers = useQuery({
    queryKey: ['admin', 'providers'],
    queryFn: () => data<readonly Provider[]>('/api/v1/providers'),
    refetchInterval: 30_000,
  });
  return (
    <Card title="Providers" flush>
      <QueryView query={providers}>
        {(rows) => (
          <Table
            caption="Providers"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ id }) => id}
            empty={
              <Empty title="Nobody serves" text="Add services to the configuration file, or let a provider dial in." />
            }
          />
        )}
      </QueryView>
    </Card>
  );
}
