import type { MarketFigures } from '../../api/analytics.ts';

const NAMES = ['date', 'requests', 'volume_micro_usd', 'active_users', 'active_providers'] as const;

/** The series as CSV (RFC 4180): a line for each day. A day that is kept back has empty fields. */
export function csvOf(figures: MarketFigures): string {
  const { requests_over_time, volume_over_time, users_over_time, providers_over_time } = figures;
  const lines = requests_over_time.map(({ date }, index) =>
    [
      date,
      ...[requests_over_time, volume_over_time, users_over_time, providers_over_time].map((series) => {
        const day = series[index];
        return day === undefined || day.suppressed === true ? '' : String(day.value);
      }),
    ].join(','),
  );
  return [NAMES.join(','), ...lines, ''].join('\r\n');
}

/** Has the browser save the series. */
export function saveCsv(figures: MarketFigures): void {
  const { start_date, end_date } = figures.date_range;
  const url = URL.createObjectURL(new Blob([csvOf(figures)], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `tollgate-${start_date}-${end_date}.csv`;
  link.click();
  URL.revokeObjectURL(url);
}
