import { expect, test } from 'vitest';
import { costOfCall, toCostFinder } from '../../../src/billing/analytics/call-facts.ts';

const M = 1_000_000n;
// Micro-USD per 1M tokens.
const rates = { prompt: 4n * M, completion: 10n * M };
const costOf = toCostFinder([
  [
    'Acme',
    'acme/model',
    'model',
    {
      rates,
      serviceTiers: { flex: { prompt: 2n * M, completion: 5n * M } },
      variants: { '1K': { image: 7n * M }, big: { prompt: 8n * M, completion: 20n * M } },
    },
  ],
]);
const USAGE = { prompt: 1_000, completion: 100 };
const RUN = { providerName: 'Acme', service: 'acme/model' };

type Fields = Readonly<Record<string, unknown>>;

test.each<[string, Fields, Fields, bigint | null]>([
  ['its tokens at the rates of the vendor', RUN, { primitive: 'model' }, 5_000n],
  ['those of the service tier that it had', { ...RUN, serviceTier: 'flex' }, { primitive: 'model' }, 2_500n],
  ['those of the usual tier for an unknown one', { ...RUN, serviceTier: 'other' }, { primitive: 'model' }, 5_000n],
  ['those of its operation', RUN, { primitive: 'model', operation: 'big' }, 10_000n],
  ['nothing with a key of the consumer', { ...RUN, ownKey: true }, { primitive: 'model' }, 0n],
  ['nobody knows what at another provider', { ...RUN, providerName: 'Others' }, { primitive: 'model' }, null],
  ['nobody knows what as another kind', RUN, { primitive: 'tool' }, null],
])('a call costs the gateway %s', (_what, run, call, cost) => {
  expect(costOfCall(USAGE, run, call, costOf)).toBe(cost);
});

test('a variant without rates has those of the one above it', () => {
  expect(costOfCall({ image: 2 }, { ...RUN, variant: '1K/high' }, { primitive: 'model' }, costOf)).toBe(14n);
});
