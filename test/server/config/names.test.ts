import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const toml = (name: string) => JSON.stringify(name);
const RTL = String.fromCodePoint(0x202e);

describe('the name of a model', () => {
  test.each([
    'gpt-4o',
    'openai/gpt-4o-mini',
    'llama3.2:3b',
    'a',
    '_private',
    'a.b',
    'org/team/model',
    'x'.repeat(128),
    'floor',
    'a:floor:b',
  ])('may be %s', (name) => {
    expect(load(modelBlock({ name: toml(name) })).services[0]!.service.name).toBe(name);
  });

  test.each([
    '',
    ' ',
    'two words',
    '../../etc/passwd',
    'a..b',
    'a//b',
    '/a',
    'a/',
    ':a',
    'a:',
    './a',
    '<script>alert(1)</script>',
    `a${RTL}b`,
    'a\u0000b',
    'a\r\nb',
    'ä',
    '__proto__',
    'constructor',
    'acme/toString',
    'gpt-4o:floor',
    'gpt-4o:nitro',
    'x'.repeat(129),
    'x'.repeat(1_000_000),
    '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS:gpt-4o',
    '0x52908400098527886E0F7030069857D2E4169EE7:gpt-4o',
    '0X52908400098527886E0F7030069857D2E4169EE7:gpt-4o',
    // Keys that begin with zeros are shorter.
    '111vRjXUKGfvwnParsHAS3HuSVzV5cA4Mcphg:gpt-4o',
  ])('may not be %j', (name) => {
    const problems = problemsOf(modelBlock({ name: toml(name) }));
    expect(problems).toMatchObject([{ key: 'models[0].name' }]);
    // What a stranger wrote does not flood or turn the report around.
    expect(problems[0]!.wrong.length).toBeLessThan(300);
    expect(problems[0]!.wrong).not.toContain(RTL);
  });
});

describe('the name that people read', () => {
  test.each(['Small', 'Größe 3 – schnell', '大型モデル', 'x'.repeat(200)])('may be %s', (name) => {
    expect(load(modelBlock({ display_name: toml(name) })).services[0]!.service.displayName).toBe(name);
  });

  test.each(['', ' x', 'x ', `a${RTL}b`, 'a\u200bb', 'a\nb', 'x'.repeat(201)])('may not be %j', (name) => {
    expect(problemsOf(modelBlock({ display_name: toml(name) }))).toMatchObject([{ key: 'models[0].display_name' }]);
  });
});

describe('the name of a provider', () => {
  const KEY = '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS';
  const ADDRESS = '0x52908400098527886E0F7030069857D2E4169EE7';
  test.each([KEY, KEY.toLowerCase(), KEY.toUpperCase(), ADDRESS, ADDRESS.toLowerCase(), ADDRESS.toUpperCase()])(
    'may not be %s, by which consumers choose another provider',
    (name) => {
      expect(problemsOf(modelBlock({ provider_name: toml(name) }))).toMatchObject([
        { key: 'models[0].provider_name', wrong: expect.stringContaining('public key') },
      ]);
    },
  );

  test.each(['Acme', 'Acme Inc.', 'a', '3rd_party-x', 'Research Institute of Language Models'])('may be %s', (name) => {
    expect(load(modelBlock({ provider_name: toml(name) })).services[0]!.service.providerName).toBe(name);
  });

  test.each(['', ' Acme', 'Acme ', 'a/b', 'a:b', 'a..b', 'Ä', `a${RTL}`, 'constructor', 'a\nb', 'x'.repeat(65)])(
    'may not be %j',
    (name) => {
      expect(problemsOf(modelBlock({ provider_name: toml(name) }))).toMatchObject([{ key: 'models[0].provider_name' }]);
    },
  );
});
