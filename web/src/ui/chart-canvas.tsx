import { useEffect, useRef, type ReactNode } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { seriesColor } from './chart-colors.ts';
import type { ChartProps } from './chart.tsx';

const DAY_S = 86_400;
const HOUR_S = 3_600;
const FONT = '12px Inter, ui-sans-serif, system-ui, sans-serif';
const DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });

/** The drawing of a chart. It is redrawn with other colours when the theme changes. */
export default function ChartCanvas({
  days,
  hours = false,
  series,
  format,
  stacked = false,
  height = 240,
}: ChartProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const reading = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    const element = place.current!;
    const read = (index: number | null | undefined) => {
      reading.current!.textContent =
        typeof index === 'number' ? readingOf({ days, hours, series, format, title: '' }, index) : '';
    };
    let plot: UPlot | null = null;
    const draw = () => {
      plot?.destroy();
      plot = new UPlot(
        {
          ...optionsOf({ days, hours, series, format, stacked, height, title: '' }, element),
          hooks: { setCursor: [({ cursor }) => read(cursor.idx)] },
        },
        dataOf(days, series, stacked),
        element,
      );
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', draw);
    return () => {
      resized.disconnect();
      themed.disconnect();
      system.removeEventListener('change', draw);
      plot?.destroy();
    };
  }, [days, hours, series, format, stacked, height]);
  return (
    <div className="relative">
      {/* Shows the day under the pointer. Screen readers have the table instead. */}
      <p
        ref={reading}
        aria-hidden
        className="figures pointer-events-none absolute right-0 -top-1 z-10 rounded bg-card px-1 text-sm font-medium"
      />
      {series.length > 1 && (
        <ul aria-hidden className="mb-2 flex flex-wrap gap-x-4 gap-y-1 text-sm text-soft">
          {series.map(({ name, color }, index) => (
            <li key={name} className="flex items-center gap-1.5">
              <span className="size-2.5 rounded-[3px]" style={{ background: `var(${seriesColor(color, index)})` }} />
              {name}
            </li>
          ))}
        </ul>
      )}
      <div ref={place} style={{ height }} className="w-full" />
    </div>
  );
}

function readingOf({ days, hours = false, series, format }: ChartProps, index: number): string {
  const values = series.map(({ name, values: all }) => {
    const value = all[index] ?? null;
    const text = value === null ? 'not shown' : format(value);
    return series.length === 1 ? text : `${name} ${text}`;
  });
  return `${(hours ? HOUR : DATE).format(Date.parse(days[index]!))}: ${values.join(', ')}`;
}

/** Stacked bars are drawn from the tallest to the lowest. Each covers the lower part of the one before. */
function dataOf(days: ChartProps['days'], series: ChartProps['series'], stacked: boolean): UPlot.AlignedData {
  const xs = days.map((day) => Date.parse(day) / 1_000);
  if (!stacked) return [xs, ...series.map(({ values }) => [...values])];
  const sums = days.map(() => 0);
  const layers = series.map(({ values }) =>
    days.map((_, index) => {
      sums[index] = (sums[index] ?? 0) + (values[index] ?? 0);
      return sums[index];
    }),
  );
  return [xs, ...layers.reverse()];
}

function optionsOf(
  { hours = false, series, format, stacked, height = 240 }: ChartProps,
  element: HTMLElement,
): UPlot.Options {
  const [stepS, steps] = hours ? [HOUR_S, [1, 3, 6, 12]] : [DAY_S, [1, 2, 7, 14, 30]];
  const styles = getComputedStyle(element);
  const color = (name: string) => {
    // A canvas can't use CSS variables, so an element is created and the browser computes its colour.
    const probe = element.appendChild(document.createElement('i'));
    probe.style.color = `var(${name})`;
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  const soft = color('--soft');
  const grid = { stroke: color('--line'), width: 1 };
  const colors = series.map((each, index) => color(seriesColor(each.color, index)));
  const whole = series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));
  const width = element.clientWidth || Number.parseFloat(styles.width) || 600;
  const drawn = stacked ? [...series.keys()].reverse() : [...series.keys()];
  return {
    width,
    height,
    padding: [12, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !stacked } },
    scales: {
      x: { time: true, range: (_plot, min, max) => [min - stepS / 2, max + stepS / 2] },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      {
        stroke: soft,
        font: FONT,
        grid: { show: false },
        ticks: { show: false },
        values: (_plot, splits) => splits.map((seconds) => (hours ? HOUR : DATE).format(seconds * 1_000)),
        incrs: steps.map((count) => count * stepS),
        space: 70,
        size: 28,
      },
      {
        stroke: soft,
        font: FONT,
        grid,
        ticks: { show: false },
        size: 64,
        values: (_plot, splits) => labelsOf(splits, format),
        ...(whole ? { incrs: WHOLE_STEPS } : {}),
        space: 36,
      },
    ],
    series: [
      {},
      ...drawn.map((index) => {
        const { name } = series[index]!;
        const stroke = colors[index]!;
        return stacked
          ? {
              label: name,
              stroke,
              fill: stroke,
              width: 0,
              points: { show: false },
              paths: UPlot.paths.bars!({ size: [0.72, 40], radius: 0.12 }),
            }
          : {
              label: name,
              stroke,
              width: 2,
              points: { show: false },
              ...(series.length === 1 ? { fill: fade(stroke) } : {}),
            };
      }),
    ],
  };
}

/** Steps for the axis of counts: there is no half of a call. */
const WHOLE_STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

/** Omits a label that is the same as the one before it. */
function labelsOf(splits: readonly number[], format: (value: number) => string): string[] {
  const labels = splits.map(format);
  return labels.map((label, index) => (label === labels[index - 1] ? '' : label));
}

const fade = (color: string) => color.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.1)');
