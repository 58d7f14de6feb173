import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createCallObserver, createMergedMetrics, createMetrics } from '#observe';
import { exampleCall, exampleOffer, settledBy } from './example-call.ts';

// What `promtool check metrics` asks of names, types and help texts. Where it is installed it is asked itself.

const HAS_PROMTOOL = spawnSync('promtool', ['--version']).status === 0;

/** Units that have another base unit, and short forms of units. */
const NOT_BASE =
  /^(?:(?:milli|micro|nano)?seconds?|minutes?|hours?|days?|weeks?|(?:kilo|mega|giga|tera)?bytes?|bits?|percent|celsius|fahrenheit|kelvin|s|ms|us|ns|sec|b|kb|mb|gb|tb|pb|m|h|d)$/;
const BASE = new Set(['seconds', 'bytes', 'celsius', 'kelvin']);

/** What is wrong with the metrics of a text, as promtool says it or much alike. */
function lint(text: string): string[] {
  const of = (kind: string) =>
    new Map([...text.matchAll(new RegExp(`^# ${kind} (\\S+) ?(.*)$`, 'gm'))].map(([, name, rest]) => [name!, rest!]));
  const [helps, types] = [of('HELP'), of('TYPE')];
  const found: string[] = [];
  for (const [name, type] of types) {
    const say = (words: string) => found.push(`${name} ${words}`);
    if (!helps.get(name)) say('no help text');
    if (type === 'counter' && !name.endsWith('_total')) say('counter metrics should have "_total" suffix');
    if (type !== 'counter' && name.endsWith('_total')) say('non-counter metrics should not have "_total" suffix');
    if (/_(?:bucket|count|sum)$/.test(name)) say('has a suffix of histograms and summaries');
    if (/[:A-Z]/.test(name)) say('metric names should be in snake_case, without colons');
    for (const word of name.split('_')) {
      if (['counter', 'gauge', 'histogram', 'summary', 'untyped'].includes(word))
        say(`metric name should not include type '${word}'`);
      if (NOT_BASE.test(word) && !BASE.has(word)) say(`use base unit instead of "${word}"`);
    }
    const own = text.match(new RegExp(`^${name}\\{[^}]*\\b(?:le|quantile)="`, 'm'));
    if (own && type !== 'histogram' && type !== 'summary') say('has the label of a bucket');
  }
  return found;
}

const promtool = (text: string) => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
};

/** Everything that a gateway can show, with a call in it. */
const everything = () => {
  const metrics = createMetrics({
    funds: async () => ({
      chains: [{ network: 'eip155:1', answers: true, comparedAt: 0, held: 1n, booked: 1n, halted: false }],
      open: [],
    }),
  });
  const observer = createCallObserver([metrics.sink], { now: () => 1_000 });
  const call = exampleCall();
  observer.started(call);
  observer.resolved(call, settledBy(exampleOffer()));
  metrics.answered('GET', '/health/ready', 200);
  metrics.tunnelEvent('left');
  metrics.rateLimited('requests');
  metrics.ledgerBatch({ size: 1, durationMs: 1 });
  return metrics;
};

test('metrics of a process, and of several together, are as Prometheus wants them', async () => {
  const metrics = everything();
  const merged = createMergedMetrics();
  merged.take(1, await metrics.snapshot());
  merged.take(2, await metrics.snapshot());
  for (const text of [await metrics.text(), await merged.text()]) {
    expect(text).toContain('nodejs_eventloop_lag_seconds');
    expect(text).toContain('tollgate_treasury_held_micro_usd');
    expect(lint(text)).toEqual([]);
    if (HAS_PROMTOOL) expect(promtool(text)).toEqual({ status: 0, said: '' });
  }
});

test('what is wrong is found', () => {
  const wrong = `# TYPE a counter
a 1
# HELP b_total Help
# TYPE b_total gauge
b_total 1
# HELP wait_milliseconds Help
# TYPE wait_milliseconds gauge
wait_milliseconds 1
# HELP my_gauge_ms Help
# TYPE my_gauge_ms gauge
my_gauge_ms{le="1"} 1
# HELP camelCase_count Help
# TYPE camelCase_count gauge
camelCase_count 1
`;
  const names = (lines: readonly string[]) => [...new Set(lines.map((line) => line.split(' ')[0]!))].toSorted();
  const all = ['a', 'b_total', 'camelCase_count', 'my_gauge_ms', 'wait_milliseconds'];
  expect(names(lint(wrong))).toEqual(all);
  if (HAS_PROMTOOL) expect(names(promtool(wrong).said.trim().split('\n'))).toEqual(all);
});
