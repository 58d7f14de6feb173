import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import type { Vendor } from '../../../../src/program/cli/reconcile/csv-formats.ts';
import { readExport } from '../../../../src/program/cli/reconcile/read-export.ts';
import { modelKey, toMicro } from '../../../../src/program/cli/reconcile/vendor-row.ts';

const text = (name: string) => readFile(new URL(`exports/${name}`, import.meta.url), 'utf8');
const read = async (vendor: Vendor, name: string) => readExport(vendor, await text(name), name);

const DAY = '2026-11-02';
const none = { requests: null, prompt: null, completion: null, cached: null, reasoning: null, cost: null };

it('OpenAI: usage and costs, of the page and of the API', async () => {
  expect(await read('openai', 'openai-usage.csv')).toEqual({
    format: 'openai: usage of completions, CSV',
    rows: [
      { ...none, day: DAY, model: 'gpt-4o-2024-08-06', requests: 10, prompt: 59_200, completion: 10_646, cached: 5760 },
      { ...none, day: DAY, model: 'gpt-4o-2024-11-20', requests: 2, prompt: 100, completion: 10, cached: 0 },
    ],
  });
  expect((await read('openai', 'openai-costs.csv')).rows).toEqual([
    { ...none, day: DAY, model: 'gpt-4o-2024-08-06', cost: 133_600_000_000n },
    { ...none, day: DAY, model: 'gpt-4o-2024-08-06', cost: 400n },
    { ...none, day: DAY, model: 'web search tool calls', cost: 30_000_000_000n },
  ]);
  expect((await read('openai', 'openai-usage.json')).rows).toEqual([
    { ...none, day: DAY, model: 'gpt-4.1-mini-2025-04-14', requests: 5, prompt: 1000, completion: 500, cached: 800 },
  ]);
  expect((await read('openai', 'openai-costs.json')).rows).toEqual([
    { ...none, day: DAY, model: null, cost: 60_000_000_000n },
  ]);
});

it('Anthropic: all tokens of a prompt, cents of the API, and the names of the console', async () => {
  const model = 'claude-haiku-4-5-20251001';
  expect((await read('anthropic', 'anthropic-usage.json')).rows).toEqual([
    { ...none, day: DAY, model, prompt: 3200, completion: 500, cached: 200 },
  ]);
  expect((await read('anthropic', 'anthropic-usage.csv')).rows).toEqual([
    { ...none, day: DAY, model, prompt: 4123, completion: 5000, cached: 4000 },
  ]);
  const costs = (await read('anthropic', 'anthropic-costs.json')).rows;
  expect(costs).toEqual([
    { ...none, day: DAY, model, cost: 1_237_891_200_000n },
    { ...none, day: DAY, model: 'Web Search Usage', cost: 100_000_000_000n },
  ]);
  expect(toMicro(costs[0]!.cost!)).toBe(1_237_891n);
  const [console] = (await read('anthropic', 'anthropic-costs.csv')).rows;
  expect(console).toEqual({ ...none, day: DAY, model: 'Claude Haiku 4.5', cost: 1_250_000_000_000n });
  expect(modelKey(console!.model!)).toBe(modelKey(model));
});

it('OpenRouter: activity of the API, and the log of generations', async () => {
  expect((await read('openrouter', 'openrouter-activity.json')).rows).toEqual([
    {
      day: DAY,
      model: 'openai/gpt-4.1',
      requests: 5,
      prompt: 50,
      completion: 125,
      cached: null,
      reasoning: 25,
      cost: 15_000_000_000n,
    },
  ]);
  const { rows } = await read('openrouter', 'openrouter-generations.csv');
  expect(rows.map(({ day, prompt, cost }) => [day, prompt, cost])).toEqual([
    [DAY, 10_389, 12_300_000n],
    [DAY, 1, 150_000n],
  ]);
  expect(modelKey(rows[0]!.model!)).toBe('openai/gpt-4.1');
});

it('our own CSV has what it has', () => {
  expect(readExport('csv', '\uFEFFday,model,cost_usd\r\n2026-11-02,"a, b",0.5\r\n2026-11-02,,1\r\n', 'x')).toEqual({
    format: 'csv: day and model, CSV',
    rows: [
      { ...none, day: DAY, model: 'a, b', cost: 500_000_000_000n },
      { ...none, day: DAY, model: null, cost: 1_000_000_000_000n },
    ],
  });
});

it('refuses what it does not know, and says what it found and what it knows', async () => {
  const refused = (vendor: Vendor, content: string, error: string | RegExp) =>
    expect(() => readExport(vendor, content, 'my.csv')).toThrow(error);
  refused(
    'openai',
    'Date,Slug,Usage\n',
    /no known format of openai. Its columns: Date, Slug, Usage\.\nKnown formats of openai:\n {2}usage of completions, CSV, with start_time_iso, model/,
  );
  refused('anthropic', await text('openai-usage.csv'), 'This is an export of openai: tollgate reconcile openai');
  refused('anthropic', await text('openai-usage.json'), 'Its members: object, input_tokens');
  refused(
    'openai',
    (await text('openai-costs.csv')).replace('project_id', 'amount_of_credits'),
    'columns that this tollgate does not know: amount_of_credits',
  );
  refused('openai', (await text('openai-costs.csv')).replace(',usd,', ',eur,'), 'line 2: the currency is "eur"');
  refused(
    'openai',
    (await text('openai-usage.csv')).replace('59200.0', '592.5'),
    'line 2: input_tokens is "592.5", not a whole number',
  );
  refused(
    'openai',
    (await text('openai-usage.json')).replace('"has_more": false', '"has_more": true'),
    'so days are missing',
  );
  refused('openai', (await text('openai-usage.json')).replace('"gpt-4.1-mini-2025-04-14"', 'null'), 'group_by=model');
  refused('csv', 'day,model,requests\n2026-02-30,a,1\n', 'line 2: day is "2026-02-30", not a day');
  refused('csv', 'day,model,requests\n2026-02-03,a\n', 'line 2: 2 values, and the first line has 3 names');
  refused('csv', 'day,model\n2026-02-03,"a" b\n', 'line 2: this is no CSV');
  refused('csv', '', 'my.csv is empty');
  refused('openai', '{', 'is no JSON');
});

it('models are compared without the date of their version and the variant of OpenRouter', () => {
  for (const [name, key] of [
    ['gpt-4o-2024-08-06', 'gpt-4o'],
    ['gpt-4o', 'gpt-4o'],
    ['Claude 3.5 Sonnet 2024-10-22', 'claude-3-5-sonnet'],
    ['claude-3-5-sonnet-20241022', 'claude-3-5-sonnet'],
    ['deepseek/deepseek-v4.1-flash-20260910', 'deepseek/deepseek-v4.1-flash'],
    ['meta/llama:free', 'meta/llama'],
    ['ft:gpt-4.1-mini-2025-04-14:acme::abc', 'ft:gpt-4.1-mini-2025-04-14:acme::abc'],
  ] as const)
    expect(modelKey(name)).toBe(key);
});
