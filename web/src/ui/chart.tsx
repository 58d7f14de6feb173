import { lazy, Suspense, type ReactNode } from 'react';
import { ErrorBoundary } from '../app/error-boundary.tsx';
import { Fold } from './fold.tsx';
import { Skeleton } from './skeleton.tsx';

export interface Series {
  readonly name: string;
  /** One value for each day; null leaves a gap. */
  readonly values: readonly (number | null)[];
  /** A colour of the styles, such as `--accent`; default one of the kinds by its place. */
  readonly color?: string;
}

export interface ChartProps {
  /** Says in words what the chart shows. */
  readonly title: string;
  /** `YYYY-MM-DD`, in order. */
  readonly days: readonly string[];
  readonly series: readonly Series[];
  /** A value as people read it. */
  readonly format: (value: number) => string;
  /** Bars on top of each other in place of lines. */
  readonly stacked?: boolean;
  readonly height?: number;
}

const Canvas = lazy(() => import('./chart-canvas.tsx'));

/** A chart over days, and the table with the same figures under it. The drawing is loaded when it is shown. */
export function Chart(props: ChartProps): ReactNode {
  const { title, days, series, format, height = 240 } = props;
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
                    Day (UTC)
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
                      {day}
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
