import type { Counter, Histogram } from 'prom-client';

type Labels = Readonly<Record<string, string>>;

export interface CounterSeries {
  inc(value?: number): void;
}
export interface HistogramSeries {
  observe(value: number): void;
}

/**
 * The record that prom-client keeps for one series. It is not part of the documented interface. If it is not found, the
 * documented functions are used.
 */
interface CounterRecord {
  readonly labels: Labels;
  value: number;
}

interface HistogramRecord {
  readonly labels: Labels;
  readonly bucketValues: Record<string, number>;
  sum: number;
  count: number;
}

/**
 * One series of a counter. prom-client's own handle builds the key of the series from all its labels at each use, and
 * looks it up: 0.3 µs and 300 bytes, nine times in each call. This one looks up its record only once. The series
 * appears in the text after its first use.
 */
export function counterSeries(counter: Counter, labels: Labels): CounterSeries {
  let record: CounterRecord | null = null;
  return {
    inc(value = 1) {
      if (record !== null && value >= 0) {
        record.value += value;
        return;
      }
      counter.inc(labels, value);
      record = recordOf<CounterRecord>(counter, labels, ({ value: kept }) => typeof kept === 'number');
    },
  };
}

/** One series of a histogram, in the same way as counterSeries. */
export function histogramSeries(histogram: Histogram, labels: Labels): HistogramSeries {
  let record: HistogramRecord | null = null;
  let bounds: readonly number[] = [];
  /**
   * The bounds as strings, as the record has them. Converting a number to a string would take longer than everything
   * else.
   */
  let names: readonly string[] = [];
  return {
    observe(value) {
      if (record === null || !Number.isFinite(value)) {
        histogram.observe(labels, value);
        record = recordOf<HistogramRecord>(
          histogram,
          labels,
          ({ sum, count }) => typeof sum === 'number' && typeof count === 'number',
        );
        names = Object.keys(record?.bucketValues ?? {}).toSorted((a, b) => Number(a) - Number(b));
        bounds = names.map(Number);
        return;
      }
      let at = 0;
      while (at < bounds.length && value > bounds[at]!) at++;
      if (at < names.length) record.bucketValues[names[at]!]! += 1;
      record.sum += value;
      record.count += 1;
    },
  };
}

function recordOf<R extends { readonly labels: Labels }>(
  metric: object,
  labels: Labels,
  isOne: (record: R) => boolean,
): R | null {
  const { hashMap } = metric as { readonly hashMap?: Readonly<Record<string, R>> };
  const found = Object.values(hashMap ?? {}).find((record) => sameLabels(record.labels, labels));
  return found && isOne(found) ? found : null;
}

function sameLabels(one: Labels, other: Labels): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
