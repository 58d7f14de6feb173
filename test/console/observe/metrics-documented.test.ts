import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '#observe';

const DOCS = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8');

test('docs/reference/metrics.md has every metric of the gateway', async () => {
  const metrics = createMetrics({ processMetrics: false });
  metrics.showFunds(async () => ({ chains: [], open: [] }));
  const names = [...(await metrics.text()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(30);
  expect(names.filter((name) => !DOCS.includes(`\`${name}`))).toEqual([]);
});
