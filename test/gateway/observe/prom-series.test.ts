import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { counterSeries, histogramSeries } from '../../../src/observe/prometheus.ts';

function metrics() {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    counter: new Counter({ name: 'c', help: 'c', labelNames: ['a', 'b'], registers }),
    histogram: new Histogram({ name: 'h', help: 'h', labelNames: ['a', 'b'], buckets: [0.1, 1, 10], registers }),
    plain: new Histogram({ name: 'p', help: 'p', buckets: [1, 2], registers }),
  };
}

test("a series counts as prom-client's own handles do, and beside them", async () => {
  const [ours, theirs] = [metrics(), metrics()];
  const values = [0.05, 0.1, 0.100001, 1, 5, 10, 11, 0];
  for (const labels of [{ a: '1' }, { a: '2', b: 'x' }, { b: 'x', a: '3' }]) {
    const counter = counterSeries(ours.counter, labels);
    const histogram = histogramSeries(ours.histogram, labels);
    for (const value of values) {
      counter.inc(value);
      histogram.observe(value);
      theirs.counter.inc(labels, value);
      theirs.histogram.observe(labels, value);
    }
    counter.inc();
    for (const { counter: c, histogram: h } of [ours, theirs]) {
      c.inc({ ...labels }, 7);
      h.observe({ ...labels }, 3);
    }
    theirs.counter.inc(labels);
  }
  const plain = histogramSeries(ours.plain, {});
  for (const value of [1, 2, 3]) {
    plain.observe(value);
    theirs.plain.observe(value);
  }
  expect(await ours.registry.metrics()).toBe(await theirs.registry.metrics());
});

test('a series that was not used is not there', async () => {
  const { registry, counter, histogram } = metrics();
  counterSeries(counter, { a: '1' });
  histogramSeries(histogram, { a: '1' });
  expect(await registry.metrics()).not.toContain('a="1"');
});

test('what prom-client refuses is refused at any use', () => {
  const { counter, histogram } = metrics();
  const counted = counterSeries(counter, { a: '1' });
  const observed = histogramSeries(histogram, { a: '1' });
  for (let use = 0; use < 2; use++) {
    expect(() => counted.inc(-1)).toThrow('decrease');
    expect(() => observed.observe(Number.NaN)).toThrow('not a valid number');
    counted.inc(1);
    observed.observe(1);
  }
});
