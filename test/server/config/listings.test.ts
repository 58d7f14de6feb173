import { describe, expect, test } from 'vitest';
import { providerProblemsOf } from '../../providers/proxy/load.ts';
import { block, load, problemsOf } from './load.ts';

describe('blocks of one name', () => {
  test('of different kinds are doors of one listing', () => {
    const text =
      block('models') +
      block('tools', { description: '"As a tool."' }) +
      block('agents') +
      block('images') +
      block('videos');
    expect(load(text).services.map(({ service }) => [service.primitive, service.name, service.description])).toEqual([
      ['model', 'acme/small', ''],
      ['tool', 'acme/small', 'As a tool.'],
      ['agent', 'acme/small', ''],
      ['image', 'acme/small', ''],
      ['video', 'acme/small', ''],
    ]);
  });

  test('have one display_name', () => {
    const [problem, ...others] = problemsOf(block('models') + block('agents', { display_name: '"Other"' }));
    expect(problem).toMatchObject({
      key: 'agents[0].display_name',
      right: 'one display_name for all blocks of one name',
    });
    expect(others).toEqual([]);
    expect(
      load(block('models') + block('agents', { display_name: '"Other"', provider_name: '"Other"' })).services,
    ).toHaveLength(2);
  });

  test('have that of the block that says one', () => {
    const silent = { display_name: null };
    for (const text of [block('models') + block('agents', silent), block('models', silent) + block('agents')])
      expect(new Set(load(text).services.map(({ service }) => service.displayName))).toEqual(new Set(['Small (Acme)']));
    expect(
      load(block('models') + block('agents', { ...silent, provider_name: '"Other"' })).services[1]?.service.displayName,
    ).toBe('acme/small');
  });

  test.each(['models', 'tools', 'agents', 'images', 'videos'] as const)(
    'stand once among the %s of a provider',
    (table) => {
      expect(problemsOf(block(table) + block(table, { display_name: '"Other"' }))).toMatchObject([
        { key: `${table}[1].name` },
      ]);
    },
  );

  test('are seen also where their blocks have other problems', () => {
    const keys = problemsOf(
      block('models', { 'pricing.prompt': '-1' }) + block('models', { 'pricing.prompt': '-1' }),
    ).map(({ key }) => key);
    expect(keys).toEqual(['models[0].pricing.prompt', 'models[1].name', 'models[1].pricing.prompt']);
  });
});

describe('the provider', () => {
  test('is spelled in one way in all kinds of blocks', () => {
    expect(problemsOf(block('models') + block('tools', { provider_name: '"ACME"' }))).toMatchObject([
      { key: 'tools[0].provider_name', wrong: '"ACME" and "Acme" differ in case only' },
    ]);
  });

  test('has the written spelling also where it follows from the name', () => {
    const derived = block('tools', { provider_name: null, display_name: null });
    for (const text of [
      block('models', { provider_name: '"ACME"' }) + derived,
      derived + block('models', { provider_name: '"ACME"' }),
    ])
      expect(new Set(load(text).services.map(({ service }) => service.providerName))).toEqual(new Set(['ACME']));
  });

  test("is one in a provider's file, and any in a gateway's", () => {
    const text = block('models') + block('tools', { provider_name: '"Other"', display_name: '"Other"' });
    expect(providerProblemsOf(text)).toMatchObject([
      { key: 'tools[0].provider_name', right: 'one provider_name in all blocks' },
    ]);
    expect(load(text).services).toHaveLength(2);
  });
});

test('a block that stands as a section is told so', () => {
  expect(problemsOf('[tools]\nname = "x"')).toMatchObject([
    { key: 'tools', right: 'a list of blocks: one [[tools]] for each' },
  ]);
});
