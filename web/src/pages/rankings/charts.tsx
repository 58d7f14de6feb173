import { useMemo, type ReactNode } from 'react';
import type { MarketFigures } from '../../api/figures.ts';
import { Card, Figure } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { formatMicroUsd } from '../../ui/usd.ts';
import { formatShort } from '../../ui/number.ts';

/** The sums over the range. */
export function Totals({ figures }: { readonly figures: MarketFigures }): ReactNode {
  const sums: readonly (readonly [string, string])[] = [
    ['Calls', formatShort(figures.total_requests)],
    ['Volume', formatMicroUsd(figures.total_volume)],
    ['Tokens', formatShort(figures.total_tokens)],
    ['Active users', formatShort(figures.total_active_users)],
    ['Active services', formatShort(figures.total_active_services)],
    ['Active providers', formatShort(figures.total_active_providers)],
  ];
  return (
    <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-xl border border-line bg-line sm:grid-cols-3 lg:grid-cols-6">
      {sums.map(([name, value]) => (
        <Figure key={name} name={name} value={value} className="bg-card px-4 py-3.5 sm:px-5" />
      ))}
    </dl>
  );
}

/** The four charts of the range. */
export function Charts({ figures }: { readonly figures: MarketFigures }): ReactNode {
  return (
    <div className="grid gap-5 lg:grid-cols-2">
      <Days title="Calls" values={figures.requests_over_time} format={formatShort} color="--accent" />
      <Days title="Volume" values={figures.volume_over_time} format={formatMicroUsd} color="--gold" />
      <Days title="Active users" values={figures.users_over_time} format={formatShort} color="--model" />
      <Days title="Active providers" values={figures.providers_over_time} format={formatShort} color="--agent" />
    </div>
  );
}

function Days({
  title,
  values,
  format,
  color,
}: {
  readonly title: string;
  readonly values: MarketFigures['requests_over_time'];
  readonly format: (value: number) => string;
  readonly color: string;
}): ReactNode {
  const days = useMemo(() => values.map(({ date }) => date), [values]);
  const series = useMemo(
    () => [{ name: title, values: values.map(({ value, suppressed }) => (suppressed === true ? null : value)), color }],
    [title, values, color],
  );
  return (
    <Card title={title}>
      <Chart title={`${title} by day`} days={days} series={series} format={format} stacked height={200} />
    </Card>
  );
}
