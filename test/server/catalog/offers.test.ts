import { priceId } from '#billing/amounts';
import { offersFromConfig } from '../../../src/server/catalog/offers.ts';
import { expect, test } from 'vitest';
import { load, modelBlock } from '../config/load.ts';

const made = (text: string) =>
  offersFromConfig(load(text).services, { providerId: (name) => `key-of-${name}`, createdAt: 42 });

test('a service of the file becomes an offer of its provider', () => {
  const rates = { prompt: 150_000n, completion: 600_000n };
  expect(made(modelBlock({ context_length: '9', max_output_tokens: '3' }))).toEqual([
    {
      id: 'model/key-of-Acme:acme/small',
      service: 'acme/small',
      primitive: 'model',
      provider: { id: 'key-of-Acme', name: 'Acme' },
      price: { id: priceId('key-of-Acme', 'acme/small', rates), rates },
      variants: {},
      priceCap: null,
      endpoint: { kind: 'direct', baseUrl: 'http://127.0.0.1:9/v1', headers: { authorization: 'Bearer k' } },
      displayName: 'Small (Acme)',
      description: '',
      createdAt: 42,
      model: {
        upstreamModel: 'small',
        contextLength: 9,
        maxOutputTokens: 3,
        inputModalities: ['text'],
        outputModalities: ['text'],
      },
      agent: null,
      media: null,
    },
  ]);
});

test('without a key no authorization is sent', () => {
  expect(made(modelBlock({ 'params.api_key': '""' }))[0]!.endpoint).toMatchObject({ headers: {} });
});

test('another price is another version', () => {
  const [before] = made(modelBlock());
  const [after] = made(modelBlock({ 'pricing.prompt': '0.16' }));
  expect(after!.price.id).not.toBe(before!.price.id);
  expect(made(modelBlock())[0]!.price.id).toBe(before!.price.id);
});
