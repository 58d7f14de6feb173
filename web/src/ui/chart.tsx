import { lazy, Suspense, type ReactNode } from 'react';
import { ErrorBoundary } from '../app/error-boundary.tsx';
import { Fold } from './fold.tsx';
import { Skeleton } from './skeleton.tsx';

export interface Series {
  readonly name: string;
  /** One value per day. null leaves a gap. */
  readonly values: readonly (number | null)[];
  /** The name of a CSS variable, such as `--accent`. The default depends on the index of the series. */
  readonly color?: string;
}

export interface ChartProps {
  /** Describes the chart in words. */
  readonly title: string;
  /** `YYYY-MM-DD`, in order; with `hours`, ISO 8601 times of full hours. */
  readonly days: readonly string[];
  /** The steps are hours instead of days. */
  readonly hours?: boolean;
  readonly series: readonly Series[];
  /** Formats a value for people. */
  readonly format: (value: number) => string;
  /** Draws stacked bars instead of lines. */
  readonly stacked?: boolean;
  readonly height?: number;
}

const Canvas = lazy(() => import('./chart-canvas.tsx'));

/**
 * A chart over days, and a table with the same figures below it. The drawing code is loaded when the first chart is
 * shown.
 */
export function Chart(props: ChartProps): ReactNode {
  const { title, days, hours = false, series, format, height = 240 } = props;
  return (
    <figure className="m-0">
      <ErrorBoundary>
        <Suspense
          fallback={
            <div style={{ height }}>
              <Skeleton className="h-full w-full" />
            </div>
          }
        >
          <div role="img" aria-label={title}>
            <Canvas {...props} height={height} />
          </div>
        </Suspense>
      </ErrorBoundary>
      <div className="mt-2 text-sm">
        <Fold name="Show as a table">
          <div
            className="max-h-80 overflow-auto rounded-lg border border-line"
            role="region"
            aria-label={title}
            tabIndex={0}
          >
            <table className="w-full">
              <caption className="sr-only">{title}</caption>
              <thead className="sticky top-0 bg-sunk">
                <tr>
                  <th scope="col" className="px-3 py-1.5 text-left font-medium">
                    {hours ? 'Hour (UTC)' : 'Day (UTC)'}
                  </th>
                  {series.map(({ name }) => (
                    <th key={name} scope="col" className="px-3 py-1.5 text-right font-medium">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {days.map((day, index) => (
                  <tr key={day} className="border-t border-line">
                    <th scope="row" className="figures px-3 py-1 text-left font-normal whitespace-nowrap">
                      {hours ? day.slice(0, 16).replace('T', ' ') : day}
                    </th>
                    {series.map(({ name, values }) => {
                      const value = values[index] ?? null;
                      return (
                        <td key={name} className="figures px-3 py-1 text-right">
                          {value === null ? '–' : format(value)}
                        </td>
                      );
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Fold>
      </div>
    </figure>
  );
}
