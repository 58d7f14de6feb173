import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import { addProcessMetrics, counterSeries, histogramSeries } from '../../../src/console/observe/prometheus.ts';
import { checkedWith } from '../../support/checked-with.ts';

checkedWith('prom-client', '15.1.3');

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

test('a second use reaches the record of prom-client, and not its methods', async () => {
  const { registry, counter, histogram } = metrics();
  const counted = counterSeries(counter, { a: '1' });
  const observed = histogramSeries(histogram, { a: '1' });
  counted.inc();
  observed.observe(5);
  const unused = () => {
    throw new Error('a method of prom-client was called');
  };
  vi.spyOn(counter, 'inc').mockImplementation(unused);
  vi.spyOn(histogram, 'observe').mockImplementation(unused);
  counted.inc();
  observed.observe(5);
  expect(await registry.metrics()).toContain('c{a="1"} 2');
  expect(await registry.metrics()).toContain('h_bucket{le="10",a="1"} 2');
});

test('the files of prom-client give the metrics of a process', async () => {
  const registry = new Registry();
  addProcessMetrics(registry);
  const text = await registry.metrics();
  for (const name of ['process_start_time_seconds', 'nodejs_eventloop_lag_seconds', 'nodejs_heap_size_used_bytes'])
    expect(text).toMatch(new RegExp(`^${name} [0-9.]`, 'm'));
});
