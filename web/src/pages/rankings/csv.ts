import type { MarketFigures } from '../../api/figures.ts';

const NAMES = ['date', 'requests', 'volume_micro_usd', 'active_users', 'active_providers'] as const;

type Series = 'requests_over_time' | 'volume_over_time' | 'users_over_time' | 'providers_over_time';

/** The series as CSV (RFC 4180), one line per day. Hidden days have empty fields. */
export function csvOf(figures: Pick<MarketFigures, Series>): string {
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
