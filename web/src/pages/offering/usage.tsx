import { useMemo, type ReactNode } from 'react';
import type { PriceVersion, ServiceFigures } from '../../api/figures.ts';
import type { Kind } from '../../ui/kind.tsx';
import { Card, Figure } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { formatMicroUsd } from '../../ui/money.tsx';
import { formatNumber, formatShare, formatShort } from '../../ui/number.ts';
import { shortPrice } from '../../ui/price.tsx';
import { Time } from '../../ui/time.tsx';

/** How much a service was used in 30 days. */
export function Usage({ figures }: { readonly figures: ServiceFigures }): ReactNode {
  const { requests, failed, volume, tokens, by_day } = figures;
  const days = useMemo(() => by_day.map(({ date }) => date), [by_day]);
  const series = useMemo(
    () => [
      { name: 'Charged calls', values: by_day.map((day) => day.requests) },
      { name: 'Failed, free', values: by_day.map((day) => day.failed), color: '--bad' },
    ],
    [by_day],
  );
  return (
    <Card title="The last 30 days">
      {requests + failed === 0 ? (
        <p className="text-soft">Nobody has called this service in the last 30 days.</p>
      ) : (
        <>
          <dl className="mb-5 grid grid-cols-2 gap-4 sm:grid-cols-4">
            <Figure name="Calls" value={formatShort(requests)} />
            <Figure name="Charged" value={formatMicroUsd(volume)} />
            {tokens > 0 && <Figure name="Tokens" value={formatShort(tokens)} />}
            <Figure name="Failed" value={formatShare(failed / (requests + failed))} />
          </dl>
          <Chart title="Calls by day" days={days} series={series} format={formatNumber} stacked />
        </>
      )}
    </Card>
  );
}

/** The prices that the providers asked over time, the newest first. */
export function PriceHistory({ kind, figures }: { readonly kind: Kind; readonly figures: ServiceFigures }): ReactNode {
  const versions = figures.providers.flatMap(({ name, prices }) => prices.map((price) => ({ ...price, name })));
  if (versions.length <= figures.providers.length) return null;
  const newest = versions.toSorted((a, b) => b.from.localeCompare(a.from));
  return (
    <Card title="Prices over time">
      <ol className="grid gap-2 text-sm">
        {newest.map((version) => (
          <li
            key={`${version.name} ${version.of} ${version.from}`}
            className="flex flex-wrap items-baseline justify-between gap-x-4"
          >
            <span className="text-soft">
              <Time at={version.from} /> · {version.name}
              {version.of !== null && ` · ${version.of}`}
              {version.current && ' · now'}
            </span>
            <PriceOf kind={kind} version={version} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function PriceOf({ kind, version }: { readonly kind: Kind; readonly version: PriceVersion }): ReactNode {
  const { amount, unit } = shortPrice(kind, version.pricing);
  return (
    <span className="figures">
      <b className="font-semibold">{amount}</b> <span className="text-soft">{unit}</span>
    </span>
  );
}
