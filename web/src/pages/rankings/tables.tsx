import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { MarketFigures } from '../../api/figures.ts';
import { servicePath } from '../../api/catalogue.ts';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { KIND_NAMES, KindTile } from '../../ui/kind.tsx';
import { Money } from '../../ui/money.tsx';
import { formatCalls, formatNumber, formatShare, formatShort } from '../../ui/number.ts';
import { Table, type Column } from '../../ui/table.tsx';

type Top = MarketFigures['top_services'][number] & { readonly place: number };

const COLUMNS: readonly Column<Top>[] = [
  {
    id: 'place',
    head: '#',
    align: 'right',
    cell: ({ place }) => <span className="text-soft">{place}</span>,
    width: 'w-10',
  },
  {
    id: 'service',
    head: 'Service',
    width: 'w-full max-w-0',
    cell: ({ primitive, service }) => (
      <span className="flex min-w-0 items-center gap-3">
        <KindTile kind={primitive} size={30} />
        <Link
          href={servicePath({ primitive, name: service })}
          className="min-w-0 truncate font-mono text-sm font-semibold hover:underline"
        >
          {service}
        </Link>
      </span>
    ),
  },
  {
    id: 'tokens',
    head: 'Tokens',
    align: 'right',
    from: 'md',
    cell: ({ tokens }) => (tokens === 0 ? '–' : formatShort(tokens)),
  },
  { id: 'calls', head: 'Calls', align: 'right', from: 'sm', cell: ({ requests }) => formatNumber(requests) },
  { id: 'volume', head: 'Volume', align: 'right', cell: ({ volume }) => <Money micro={volume} /> },
];

/** The services with the highest charges, in order. */
export function TopServices({ figures }: { readonly figures: MarketFigures }): ReactNode {
  const { top_services, other_services } = figures;
  const rows = top_services.map((each, index) => ({ ...each, place: index + 1 }));
  return (
    <Card title="Services by volume" flush>
      <Table
        caption="Services by volume"
        columns={COLUMNS}
        rows={rows}
        rowKey={({ primitive, service }) => `${primitive}/${service}`}
        empty={
          <Empty title="No calls in these days." text="Choose a longer range, or come back when somebody has called." />
        }
      />
      {other_services.services > 0 && (
        <p className="flex justify-between gap-4 border-t border-line px-4 py-3 text-sm text-soft sm:px-5">
          {formatNumber(other_services.services)} more services
          <span className="figures">
            {formatCalls(other_services.requests)} · <Money micro={other_services.volume} />
          </span>
        </p>
      )}
    </Card>
  );
}

/** A comparison of the kinds of services. */
export function ByKind({ figures: { by_primitive, total_requests } }: { readonly figures: MarketFigures }): ReactNode {
  return (
    <Card title="By kind">
      <ul className="grid gap-4">
        {by_primitive.map(({ primitive, requests, volume, failed }) => {
          const share = total_requests === 0 ? 0 : requests / total_requests;
          return (
            <li key={primitive}>
              <div className="flex items-baseline justify-between gap-3 text-sm">
                <b className="font-semibold">{KIND_NAMES[primitive].many}</b>
                <span className="figures text-soft">
                  {formatCalls(requests)} · <Money micro={volume} />
                </span>
              </div>
              <div aria-hidden className="mt-1.5 h-1.5 overflow-hidden rounded-full bg-sunk">
                <div
                  className="h-full rounded-full"
                  style={{ width: `${share * 100}%`, background: `var(--${primitive})` }}
                />
              </div>
              {failed > 0 && (
                <p className="mt-1 text-xs text-soft">
                  {formatNumber(failed)} failed ({formatShare(failed / (failed + requests))}) and cost nothing
                </p>
              )}
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
