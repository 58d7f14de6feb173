import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/server/config/index.ts';
import { offerModels } from '../../../src/providers/list-prices/index.ts';

/** A model of OpenAI at its own address, as the list of prices has it. */
async function openai(model: string) {
  const text = `[[providers]]\nuse = "openai"\nonly = ["${model}"]\n`;
  const read = { file: 'x.toml', text, env: { OPENAI_API_KEY: 'sk-test' }, mode: 'production' as const };
  const options = { now: Date.parse('2026-11-26T12:00:00Z'), ask: false, last: new Map() };
  const [offers] = await offerModels(loadConfig(read).providers, options);
  const [only] = loadConfig({ ...read, offered: offers!.offered }).services;
  if (only?.service.primitive !== 'model') throw new Error(`${model} is not offered`);
  return only.service;
}

// OpenAI's tables of prices in USD for 1M tokens: prompt, prompt from a cache, completion.
it.each([
  ['batch', 'gpt-5.1', 0.625, 0.0625, 5],
  ['batch', 'gpt-4.1', 1, null, 4],
  ['batch', 'gpt-4o-mini', 0.075, null, 0.3],
  ['batch', 'o3', 1, null, 4],
  ['flex', 'gpt-5-mini', 0.125, 0.0125, 1],
  ['flex', 'o3', 1, 0.25, 4],
  ['flex', 'o4-mini', 0.55, 0.1375, 2.2],
  ['priority', 'gpt-5.5', 12.5, 1.25, 75],
  ['priority', 'gpt-5.4', 5, 0.5, 30],
  ['priority', 'gpt-5', 2.5, 0.25, 20],
  ['priority', 'gpt-5-mini', 0.45, 0.045, 3.6],
  ['priority', 'gpt-5.3-codex', 3.5, 0.35, 28],
  ['priority', 'gpt-4.1', 3.5, 0.875, 14],
  ['priority', 'gpt-4.1-nano', 0.2, 0.05, 0.8],
  ['priority', 'gpt-4o', 4.25, 2.125, 17],
  ['priority', 'gpt-4o-2024-05-13', 8.75, null, 26.25],
  ['priority', 'gpt-4o-mini', 0.25, 0.125, 1],
  ['priority', 'o3', 3.5, 0.875, 14],
  ['priority', 'o4-mini', 2, 0.5, 8],
])('has the prices of the tier %s of %s, as OpenAI charges it', async (tier, model, prompt, cached, completion) => {
  const { variants } = await openai(model);
  const perMillion = (usd: number) => BigInt(Math.round(usd * 1_000_000));
  // A prompt from a cache that has no price costs as much as others.
  const parts = [prompt, cached ?? prompt, completion].map(perMillion);
  const { prompt: charged, input_cache_read: read = charged, completion: made } = variants[tier]!;
  expect([charged, read, made]).toEqual(parts);
});

it.each([
  ['gpt-5-nano', ['batch', 'flex']],
  ['gpt-5.4-nano', ['batch', 'flex']],
  ['gpt-5.3-codex', ['priority']],
  ['o3-mini', ['batch']],
  ['gpt-6-sol', ['batch', 'flex', 'priority']],
  ['text-embedding-3-small', ['batch']],
  ['gpt-5-pro', []],
])('offers %s in the service tiers %j', async (model, tiers) => {
  expect(Object.keys((await openai(model)).variants)).toEqual(tiers);
});

it('charges writes to a cache and long prompts by the price of the tier, too', async () => {
  const { batch } = (await openai('gpt-5.6-luna')).variants;
  const rates = { prompt: 100_000n, input_cache_write: 125_000n, input_cache_read: 10_000n, completion: 600_000n };
  const above = { prompt: 200_000n, input_cache_write: 250_000n, input_cache_read: 20_000n, completion: 900_000n };
  expect(batch).toMatchObject({ ...rates, tiers: [{ above: 271_999n, rates: above }] });
});
