import { describe, expect, test } from 'vitest';
import { readRegistration, RegistrationError } from '../../../../src/gateway/network/registry/document.ts';
import type { RegistrationProblem } from '../../../../src/gateway/network/tunnel-wire.ts';

const MODEL = {
  name: 'acme/small',
  display_name: 'Small (Acme)',
  provider_name: 'Acme',
  pricing: { prompt: '0.15', completion: '0.6' },
  params: { model: 'small' },
};
const TOOL = { name: 'acme/search', display_name: 'Search', provider_name: 'Acme', pricing: { per_call: '0.01' } };

async function problemsOf(text: string, servicesMax = 100): Promise<readonly RegistrationProblem[]> {
  try {
    await readRegistration(text, { servicesMax });
  } catch (error) {
    if (error instanceof RegistrationError) return error.problems;
    throw error;
  }
  throw new Error(`no problem was found in ${text.slice(0, 200)}`);
}
const ofModel = (changes: object) => problemsOf(JSON.stringify({ version: 1, models: [{ ...MODEL, ...changes }] }));
/** Puts JSON text that JSON.stringify would not write in the place of a price. */
const withPrice = (json: string) =>
  problemsOf(
    JSON.stringify({ version: 1, models: [{ ...MODEL, pricing: { prompt: '?', completion: '1' } }] }).replace(
      '"?"',
      json,
    ),
  );

test('a right one is read', async () => {
  expect(
    await readRegistration(JSON.stringify({ version: 1, models: [MODEL], tools: [TOOL] }), { servicesMax: 2 }),
  ).toMatchObject([
    { primitive: 'model', name: 'acme/small', rates: { prompt: 150_000n, completion: 600_000n } },
    { primitive: 'tool', name: 'acme/search', rates: { call: 10_000_000_000n } },
  ]);
});

describe('a name', () => {
  test.each([
    '../../etc/passwd',
    'a/../b',
    '<script>alert(1)</script>',
    `a${String.fromCodePoint(0x202e)}b`,
    '\u05d0',
    'x'.repeat(1_000_000),
    '__proto__',
    'constructor',
    'acme/toString',
    '\ud800',
    'a\r\nb',
    'gpt:floor',
    '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS:gpt',
    '',
    'std::env::HOME',
  ])('may not be %j', async (name) => {
    const problems = await ofModel({ name });
    expect(problems).toMatchObject([{ key: 'models[0].name' }]);
    expect(JSON.stringify(problems).length).toBeLessThan(500);
    expect(JSON.stringify(problems)).not.toContain(String.fromCodePoint(0x202e));
  });

  test.each(['display_name', 'provider_name', 'description'])(
    'of the other kind, %s, may not turn text around, nor be a megabyte',
    async (key) => {
      for (const text of [`a${String.fromCodePoint(0x202e)}b`, 'x'.repeat(1_000_000), 'a\u0000b', 3, null, {}, []])
        expect(await ofModel({ [key]: text })).toMatchObject([{ key: `models[0].${key}` }]);
    },
  );

  test.each(['__proto__', 'constructor', 'a b', '../x', 'x'.repeat(129), '\ud800'])(
    'of a priced tool may not be %j',
    async (name) => {
      const text = JSON.stringify({
        version: 1,
        tools: [{ ...TOOL, pricing: { per_call: '0', tools: { '?': '1' } } }],
      }).replace('"?"', JSON.stringify(name));
      const [problem, ...others] = await problemsOf(text);
      expect(problem!.key).toMatch(/^tools\[0\]\.pricing\.tools\./);
      expect(others).toEqual([]);
    },
  );
});

test.each(['tasks/one', 'acme/tasks/x', 'acme/tasks', 'acme/card', 'acme/Card', 'acme/message:send', 'acme/v1/card'])(
  'an agent may not be called %s, which reads like a route of another one',
  async (name) => {
    const agent = { name, display_name: 'Agent', provider_name: 'Acme', pricing: { per_call: '0.01' } };
    const document = (table: string) => JSON.stringify({ version: 1, [table]: [agent] });
    expect(await problemsOf(document('agents'))).toContainEqual(
      expect.objectContaining({ wrong: expect.stringContaining('reads like a route') as string }),
    );
    // Tools have no routes below them.
    await readRegistration(document('tools'), { servicesMax: 1 });
  },
);

describe('a price', () => {
  test.each([
    '-1',
    '1e-30',
    '1e30',
    '1e400',
    '-1e400',
    '"NaN"',
    '"Infinity"',
    'null',
    'true',
    '{}',
    '[]',
    '"1e3"',
    '"0x10"',
    '" "',
    '"-0.1"',
    '0.0009',
    '10000.01',
    '18446744073709551616',
    '"١"',
  ])('may not be %s', async (json) => {
    const [problem, ...others] = await withPrice(json);
    expect(problem).toMatchObject({
      key: 'models[0].pricing.prompt',
      right: expect.stringContaining('USD per 1M prompt tokens'),
    });
    expect(others).toEqual([]);
  });

  test('may be 0, and need not be text', async () => {
    expect(
      (
        await readRegistration(
          JSON.stringify({ version: 1, models: [{ ...MODEL, pricing: { prompt: 0, completion: '0' } }] }),
          { servicesMax: 1 },
        )
      )[0]!.rates,
    ).toEqual({
      prompt: 0n,
      completion: 0n,
    });
  });

  test('that was meant per token is told what it is per 1M', async () => {
    expect((await withPrice('1.5e-7'))[0]!.wrong).toContain('per 1M tokens that is 0.15');
  });
});

describe('what says where a service runs', () => {
  test.each([
    ['models', MODEL, { params: { model: 'm', api_key: 'canary7f3a' } }, 'params.api_key'],
    ['models', MODEL, { params: { model: 'm', api_base: 'http://canary7f3a' } }, 'params.api_base'],
    ['tools', TOOL, { endpoint: 'http://canary7f3a' }, 'endpoint'],
    ['tools', TOOL, { command: 'canary7f3a' }, 'command'],
    ['tools', TOOL, { env: { canary7f3a: 'canary7f3a' } }, 'env'],
  ])('is refused: %s %j', async (table, base, changes, key) => {
    const problems = await problemsOf(JSON.stringify({ version: 1, [table]: [{ ...base, ...changes }] }));
    expect(problems).toEqual([
      {
        key: `${table}[0].${key}`,
        wrong: 'says where the service runs',
        right: 'leave it out: a registration tells nobody',
      },
    ]);
  });
});

describe('a document', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{"version":1,'],
    ['null', 'null'],
    ['a list', '[]'],
    ['text', '"x"'],
    ['a number that no double holds', '1e999'],
    ['half an object', '{"models"'],
    ['a million brackets', '['.repeat(1_000_000)],
    ['ten thousand levels', `${'{"models":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['a million keys', `{${Array.from({ length: 300_000 }, (_, index) => `"k${index}":1`).join()}}`],
    ['more than a control line', `{"version":1,"x":"${'x'.repeat(5_000_000)}"}`],
  ])('may not be %s', async (_what, text) => {
    const before = process.cpuUsage();
    expect(await problemsOf(text)).toMatchObject([{ key: 'document' }]);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(2_000);
  });

  test('has one version', async () => {
    expect(await problemsOf(JSON.stringify({ models: [MODEL] }))).toMatchObject([{ key: 'version' }]);
    expect(await problemsOf(JSON.stringify({ version: 2, models: [MODEL] }))).toMatchObject([
      { key: 'version', wrong: 'is 2' },
    ]);
  });

  test('offers at least one service, and at most what the gateway takes', async () => {
    expect(await problemsOf('{"version":1}')).toMatchObject([{ wrong: 'offers nothing' }]);
    expect(await problemsOf('{"version":1,"models":[]}')).toMatchObject([{ wrong: 'offers nothing' }]);
    const many = JSON.stringify({ version: 1, models: [MODEL], tools: [TOOL, { ...TOOL, name: 'b' }] });
    expect(await problemsOf(many, 2)).toMatchObject([
      { key: 'tools', wrong: 'brings the number of blocks to 3', right: 'at most 2 in all' },
    ]);
    expect(await readRegistration(many, { servicesMax: 3 })).toHaveLength(3);
  });

  test('with a list of a million is refused before it is looked at', async () => {
    const million = `[${'0,'.repeat(999_999)}0]`;
    expect(await problemsOf(`{"version":1,"models":${million}}`, 1_000)).toMatchObject([
      { key: 'models', wrong: 'brings the number of blocks to 1000000' },
    ]);
    expect(
      await problemsOf(
        JSON.stringify({ version: 1, models: [{ ...MODEL, input_modalities: '?' }] }).replace('"?"', million),
        1_000,
      ),
    ).toMatchObject([{ key: 'models[0].input_modalities', wrong: 'has 1000000 entries' }]);
  });

  test('with prices without end is refused before they are read: each would be kept for ever', async () => {
    const prices = (of: number) => Object.fromEntries(Array.from({ length: of }, (_, index) => [`t${index}`, '0.1']));
    const tools = (count: number, each: number) =>
      JSON.stringify({
        version: 1,
        tools: Array.from({ length: count }, (_, index) => ({
          ...TOOL,
          name: `t${index}`,
          pricing: { per_call: '1', tools: prices(each) },
        })),
      });
    expect(await readRegistration(tools(1, 1_000), { servicesMax: 1 })).toHaveLength(1);
    expect(await readRegistration(tools(60, 100), { servicesMax: 1_000 })).toHaveLength(60);
    expect(await problemsOf(tools(1_000, 50), 1_000)).toEqual([
      { key: 'document', wrong: 'has 50000 prices of tools, tiers and resolutions', right: 'at most 6000' },
    ]);
  });

  test('has no other keys, and changes nothing by them', async () => {
    const text = `{"version":1,"__proto__":{"polluted":1},"model":[],"models":[{"__proto__":{"polluted":1},${JSON.stringify({ ...MODEL, constructor: { prototype: {} } }).slice(1)}]}`;
    expect((await problemsOf(text)).map(({ key }) => key)).toEqual([
      '__proto__',
      'model',
      'models[0].__proto__',
      'models[0].constructor',
    ]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('is told every problem at once, of one provider', async () => {
    const text = JSON.stringify({
      version: 1,
      models: [{ ...MODEL, name: '../x', pricing: { prompt: -1 } }, 3, MODEL],
      tools: [{ ...TOOL, provider_name: 'Other' }, {}],
    });
    expect((await problemsOf(text)).map(({ key }) => key)).toEqual([
      'models[0].name',
      'models[0].pricing.prompt',
      'models[0].pricing.completion',
      'models[1]',
      'tools[0].provider_name',
      'tools[1].name',
      'tools[1].pricing.per_call',
    ]);
  });

  test('with very many problems gets an answer of bounded size', async () => {
    const problems = await problemsOf(
      JSON.stringify({ version: 1, models: Array.from({ length: 10_000 }, () => ({ [`k${'x'.repeat(50)}`]: 1 })) }),
      10_000,
    );
    expect(problems.length).toBeLessThanOrEqual(1_000);
    expect(JSON.stringify(problems).length).toBeLessThan(1_000_000);
  });
});

test.each(['model:own/chat', 'Tool:x', 'agent:acme/helper', 'video:a'])(
  'no service may be called %s, which a pattern of a key takes for a kind',
  async (name) => {
    const service = { name, display_name: 'Service', provider_name: 'Acme', pricing: { per_call: '0.01' } };
    for (const table of ['agents', 'tools'])
      expect(await problemsOf(JSON.stringify({ version: 1, [table]: [service] }))).toContainEqual(
        expect.objectContaining({ wrong: expect.stringContaining('services of this kind') as string }),
      );
  },
);
