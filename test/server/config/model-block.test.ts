import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const configOf = (changes: Readonly<Record<string, string | null>>) => load(modelBlock(changes)).services[0]!;

describe('a [[models]] block', () => {
  test('becomes a service with every field', () => {
    const changes = {
      description: '"""\nSmall.\r\nAnd fast.\n"""',
      context_length: '8192',
      max_output_tokens: '1024',
      input_modalities: '["text", "image"]',
      output_modalities: '["text"]',
      'pricing.image': '"0.001"',
      'params.model': '"upstream/small v2"',
      'params.api_base': '"https://api.example.com/v1/"',
      'params.api_key': '"std::env::KEY"',
    };
    expect(load(modelBlock(changes), { env: { KEY: 'secret-1' } }).services).toEqual([
      {
        service: {
          primitive: 'model',
          name: 'acme/small',
          displayName: 'Small (Acme)',
          providerName: 'Acme',
          description: 'Small.\nAnd fast.',
          rates: { prompt: 150_000n, completion: 600_000n, image: 1_000_000_000n },
          variants: {},
          model: {
            upstreamModel: 'upstream/small v2',
            contextLength: 8192,
            maxOutputTokens: 1024,
            inputModalities: ['text', 'image'],
            outputModalities: ['text'],
          },
        },
        target: { kind: 'http', url: 'https://api.example.com/v1', apiKey: 'secret-1' },
      },
    ]);
  });

  test('needs only what it must', () => {
    const { service } = configOf({});
    expect(service).toMatchObject({
      description: '',
      model: { contextLength: 131_072, maxOutputTokens: null, inputModalities: ['text'] },
    });
    expect(service.rates).toEqual({ prompt: 150_000n, completion: 600_000n });
  });

  test.each([
    [{}, 'is true without pricing.service_tiers.batch'],
    [
      { 'pricing.service_tiers': '{ batch = { prompt = 0.05 } }', zdr: 'true' },
      'is true beside zdr, but a provider keeps the requests of a batch',
    ],
  ])('takes no batches with %j', (more, wrong) => {
    const block = modelBlock({ 'params.batches': 'true', ...more });
    expect(problemsOf(block)).toMatchObject([{ key: 'models[0].params.batches', wrong }]);
  });

  test('takes its names from the name of the service where it leaves them out', () => {
    expect(configOf({ name: '"acme/large"', display_name: null, provider_name: null }).service).toMatchObject({
      displayName: 'acme/large',
      providerName: 'acme',
    });
    expect(problemsOf(modelBlock({ name: '"large"', provider_name: null }))).toMatchObject([
      { key: 'models[0].provider_name', wrong: 'is missing' },
    ]);
    // What would follow from the name is not asked for while the name is.
    expect(problemsOf(modelBlock({ name: null, display_name: null, provider_name: null }))).toMatchObject([
      { key: 'models[0].name' },
    ]);
  });

  test('takes "" as no key', () => {
    expect(configOf({ 'params.api_key': '""' }).target).toMatchObject({ apiKey: null });
  });

  test('refuses an answer longer than the context', () => {
    expect(problemsOf(modelBlock({ context_length: '100', max_output_tokens: '101' }))).toMatchObject([
      { key: 'models[0].max_output_tokens' },
    ]);
  });

  test('takes the bound of an answer by either name, and by both where they are the same', () => {
    for (const changes of [
      { 'params.max_output_tokens': '7' },
      { max_output_tokens: '7' },
      { max_output_tokens: '7', 'params.max_output_tokens': '7' },
    ] as const)
      expect(configOf(changes).service).toMatchObject({ model: { maxOutputTokens: 7 } });
    expect(problemsOf(modelBlock({ max_output_tokens: '7', 'params.max_output_tokens': '8' }))).toMatchObject([
      { key: 'models[0].max_output_tokens', wrong: 'is 7, but params.max_output_tokens is 8' },
    ]);
    expect(problemsOf(modelBlock({ context_length: '100', 'params.max_output_tokens': '101' }))).toMatchObject([
      { key: 'models[0].params.max_output_tokens' },
    ]);
  });

  test.each([
    ['context_length', '9223372036854775807'],
    ['params.model', '"a\\u0000b"'],
    ['params.api_key', '"two\\nlines"'],
    ['params.api_key', '"env::KEY"'],
    ['params.api_key', '"${KEY}"'],
  ])('refuses %s = %s', (key, value) => {
    expect(problemsOf(modelBlock({ [key]: value }))).toMatchObject([{ key: `models[0].${key}` }]);
  });
});

describe('several blocks', () => {
  test('are services in their order', () => {
    const text = modelBlock() + modelBlock({ provider_name: '"Other"' }) + modelBlock({ name: '"acme/large"' });
    expect(load(text).services.map(({ service }) => [service.providerName, service.name])).toEqual([
      ['Acme', 'acme/small'],
      ['Other', 'acme/small'],
      ['Acme', 'acme/large'],
    ]);
  });

  test('may not offer the same name of the same provider twice', () => {
    const [problem] = problemsOf(modelBlock() + modelBlock());
    expect(problem).toMatchObject({ key: 'models[1].name', line: 13 });
    expect(problem!.wrong).toContain('first on line 2');
  });

  test('may not spell a provider in two ways', () => {
    expect(problemsOf(modelBlock() + modelBlock({ provider_name: '"ACME"', name: '"b"' }))).toMatchObject([
      { key: 'models[1].provider_name' },
    ]);
  });
});

test('models that are no blocks are refused', () => {
  expect(problemsOf('models = 3')).toMatchObject([{ key: 'models' }]);
  expect(problemsOf('models = [3]')).toMatchObject([{ key: 'models[0]' }]);
  expect(problemsOf(modelBlock({ pricing: '3' }).replace(/\[models.pricing\][^[]*/, ''))).toContainEqual(
    expect.objectContaining({ key: 'models[0].pricing' }),
  );
});

test('the configuration is frozen to its depth', () => {
  const config = load(modelBlock());
  for (const part of [config, config.limits, config.services, config.services[0]!, config.services[0]!.service.rates])
    expect(Object.isFrozen(part)).toBe(true);
});
