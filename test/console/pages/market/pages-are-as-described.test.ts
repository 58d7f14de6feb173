import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import {
  providerDetailSchema,
  providerSchema,
  serviceSchema,
} from '../../../../src/console/pages/market/market-schema.ts';
import { offer, startMarket, tunnelled, variants } from './market-world.ts';

/** The schema with every object closed: a field that is shown and not described is found. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return 'properties' in copy && !('additionalProperties' in copy) && 'type' in copy
    ? { ...copy, additionalProperties: false }
    : copy;
}

test.each([
  ['/providers', { type: 'array', items: providerSchema }],
  ['/providers/id-A', providerDetailSchema],
  ['/tools', { type: 'array', items: serviceSchema }],
  ['/agents', { type: 'array', items: serviceSchema }],
  ['/agents/agent', serviceSchema],
])('%s holds what its schema describes, and nothing else', async (path, schema) => {
  const { catalog, connected, health, data } = await startMarket();
  const tool = offer({ provider: 'A', service: 'tool', primitive: 'tool', pricing: { call: 1 } });
  const image = offer({ provider: 'A', service: 'image', primitive: 'image', pricing: { image: 1 } });
  const video = offer({ provider: 'A', service: 'video', primitive: 'video', pricing: { second: 1, call: 1 } });
  const model = offer({ provider: 'A', service: 'agent' });
  const offers = [
    { ...tool, variants: variants(tool, 'call', { one: 2 }) },
    { ...image, variants: variants(image, 'image', { '2K': 2 }) },
    { ...video, variants: variants(video, 'second', { '480p': 1, '480p+audio': 2 }) },
    model,
    offer({ provider: 'A', service: 'agent', primitive: 'agent', pricing: { call: 1 } }),
    tunnelled(offer({ provider: 'B', service: 'agent', primitive: 'agent' })),
    tunnelled(offer({ provider: 'C', service: 'tool', primitive: 'tool' })),
  ];
  catalog.replace('config', offers);
  connected.add('id-C');
  for (const one of offers) health.succeeded(one, { firstByteMs: 1, durationMs: 2, completionTokens: 3 });
  health.flagged(model, 'usage_missing');
  health.unreachable(offers[0]!);
  const check = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(closed(schema) as object);
  check(await data(path));
  expect(check.errors).toBeNull();
});
