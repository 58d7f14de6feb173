import type { Registry } from 'prom-client';
import { gauges, type Sample } from './prometheus.ts';

/** The last kept comparison with a vendor. `at`: epoch milliseconds. `difference`: a share from 0 to 1. */
export interface ReconciliationFigure {
  readonly at: number;
  readonly vendor: string;
  readonly difference: number;
  readonly beyond: boolean;
}

interface ReconciliationMetricsOptions {
  readonly registry: Registry;
  readonly figures: () => Promise<readonly ReconciliationFigure[]>;
  readonly now: () => number;
}

/** Metrics of the comparisons with vendors. Without an answer of the database they are left out. */
export function addReconciliationMetrics({ registry, figures, now }: ReconciliationMetricsOptions): void {
  const samplesOf = (value: (figure: ReconciliationFigure) => number) => async () => {
    const rows = await figures().catch(() => []);
    return rows.map((row): Sample => [{ vendor: row.vendor }, value(row)]);
  };
  gauges(
    registry,
    ['vendor'],
    [
      [
        'tollgate_reconciliation_difference_ratio',
        'The largest share by which the bill of a vendor differs from the calls here, at the last kept comparison',
        samplesOf(({ difference }) => difference),
      ],
      [
        'tollgate_reconciliation_beyond',
        '1 if that is more than its bound',
        samplesOf(({ beyond }) => (beyond ? 1 : 0)),
      ],
      [
        'tollgate_reconciliation_age_seconds',
        'Seconds since the last kept comparison with the vendor',
        samplesOf(({ at }) => Math.max(0, now() - at) / 1_000),
      ],
    ],
    'max',
  );
}
