import type { ReactNode } from 'react';
import { useWeek } from '../../api/analytics.ts';
import { BOOT } from '../../app/boot.ts';
import { Figure } from '../../ui/card.tsx';
import { formatMicroUsd } from '../../ui/usd.ts';
import { formatShort } from '../../ui/number.ts';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Sparkline } from '../../ui/sparkline.tsx';

/** The figures of the last 7 days. Shows nothing if the gateway doesn't publish figures. */
export function WeekFigures(): ReactNode {
  const { data, error } = useWeek();
  if (!BOOT.analytics || error) return null;
  const figure = (name: string, value: string | undefined, days?: readonly { readonly value: number }[]) => (
    <Figure
      name={name}
      value={value ?? <Skeleton className="my-1 h-7 w-20" />}
      className="bg-card px-4 py-3.5 sm:px-5"
      {...(days
        ? {
            chart: <Sparkline values={days.map((day) => day.value)} label={`${name} by day`} width={72} height={28} />,
          }
        : {})}
    />
  );
  return (
    <section aria-label="The last 7 days" className="mb-6">
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-xl border border-line bg-line lg:grid-cols-4">
        {figure('Calls, 7 days', data && formatShort(data.total_requests), data?.requests_over_time)}
        {figure('Volume, 7 days', data && formatMicroUsd(data.total_volume), data?.volume_over_time)}
        {figure('Active users', data && formatShort(data.total_active_users), data?.users_over_time)}
        {figure('Active services', data && formatShort(data.total_active_services))}
      </dl>
    </section>
  );
}
