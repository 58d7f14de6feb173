import { useMemo, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { ProviderFigures } from '../../api/figures.ts';
import { providerPath, type ServiceDetail, type ServiceOffer } from '../../api/catalogue.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { formatShare } from '../../ui/number.ts';
import { Price } from '../../ui/price.tsx';
import { shortPrice } from '../../ui/price-words.ts';
import { Status } from '../../ui/status.tsx';
import { Table, type Column, type Sorting } from '../../ui/table.tsx';
import { formatDuration, Time } from '../../ui/time.tsx';
import { formatUsd } from '../../ui/usd.ts';

type Row = ServiceOffer & { readonly figures: ProviderFigures | null };

/**
 * The providers of a service, for comparison. The figures are of 30 days if the gateway has them. Otherwise they are
 * the most recent ones.
 */
export function Offers({
  service,
  figures,
}: {
  readonly service: ServiceDetail;
  readonly figures: readonly ProviderFigures[];
}): ReactNode {
  const [sorting, setSorting] = useState<Sorting>({ column: 'price', down: false });
  const { primitive, providers } = service;
  const rows = useMemo(() => {
    const known = new Map(figures.map((each) => [each.provider, each]));
    return providers.map((offer) => ({ ...offer, figures: known.get(offer.id) ?? null }));
  }, [providers, figures]);
  const columns = useMemo((): readonly Column<Row>[] => columnsOf(primitive), [primitive]);
  return (
    <Card title={providers.length === 1 ? 'Provider' : `Providers (${providers.length})`} flush>
      <Table
        caption="Providers of this service"
        columns={columns}
        rows={rows}
        rowKey={({ id }) => id}
        sorting={sorting}
        onSort={setSorting}
      />
    </Card>
  );
}

const firstByte = ({ figures, latency }: Row) => figures?.first_byte_ms ?? latency;
const uptime = ({ figures, uptime_last_1h }: Row) => figures?.uptime ?? uptime_last_1h;
const throughput = ({ figures, throughput: lately }: Row) => figures?.throughput ?? lately?.p50 ?? null;

function columnsOf(primitive: ServiceDetail['primitive']): readonly Column<Row>[] {
  const none = <span className="text-soft">–</span>;
  return [
    {
      id: 'name',
      head: 'Provider',
      sort: ({ name }) => name.toLowerCase(),
      cell: (row) => <Name row={row} kind={primitive} />,
    },
    {
      id: 'first-byte',
      head: 'First byte, p50 / p95',
      align: 'right',
      from: 'sm',
      sort: (row) => firstByte(row)?.p50 ?? null,
      cell: (row) => {
        const times = firstByte(row);
        return times ? `${formatDuration(times.p50)} / ${formatDuration(times.p95)}` : none;
      },
    },
    ...(primitive === 'model'
      ? [
          {
            id: 'throughput',
            head: 'Tokens / s',
            align: 'right',
            from: 'xl',
            sort: throughput,
            cell: (row: Row) => throughput(row)?.toFixed(0) ?? none,
          } as const,
        ]
      : []),
    {
      id: 'uptime',
      head: 'Uptime',
      align: 'right',
      from: 'sm',
      sort: uptime,
      cell: (row) => {
        const share = uptime(row);
        return share === null ? none : formatShare(share);
      },
    },
    {
      id: 'price',
      head: 'Price',
      align: 'right',
      sort: ({ typical_usd }) => typical_usd,
      cell: (row) => (
        <>
          <Price kind={primitive} pricing={row.pricing} />
          <Effective row={row} />
        </>
      ),
    },
  ];
}

/** The average price of prompts with the provider's cache, as measured lately. */
function Effective({ row: { cache_hit_rate, effective_prompt_price } }: { readonly row: Row }): ReactNode {
  if (cache_hit_rate === null || effective_prompt_price === null) return null;
  return (
    <span className="figures mt-1 block text-xs text-soft">
      {formatUsd(effective_prompt_price)} in, {formatShare(cache_hit_rate)} cached
    </span>
  );
}

function Name({ row, kind }: { readonly row: Row; readonly kind: ServiceDetail['primitive'] }): ReactNode {
  const { id, name, status, uptime_last_1h, flags, price_raised } = row;
  return (
    <span className="block leading-5">
      <Link href={providerPath(id)} className="row-link font-semibold hover:underline">
        {name}
      </Link>
      <span className="mt-0.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-soft">
        <Status status={status} uptime={uptime_last_1h} />
        {Object.entries(flags).map(([flag, count]) => (
          <Badge key={flag} tone="warn">
            {flag.replaceAll('_', ' ')} ×{count}
          </Badge>
        ))}
      </span>
      {price_raised && (
        <span className="mt-1 block text-sm text-warn">
          The price was {shortPrice(kind, price_raised.before).amount}. Calls must accept the new one until{' '}
          <Time at={price_raised.effective_at} exact />.
        </span>
      )}
    </span>
  );
}
