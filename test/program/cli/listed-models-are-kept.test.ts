import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/server/config/file.ts';
import { createListedConfig, keepListed } from '../../../src/program/cli/gateway/listed-config.ts';
import { type ListingProvider, startListingProvider } from '../../support/listing-provider.ts';

// A running gateway asks its providers again and again, and takes what has changed.

const MINUTE_MS = 60_000;

let provider: ListingProvider;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  provider = await startListingProvider(['gpt-5']);
});
afterEach(async () => {
  vi.useRealTimers();
  await provider.stop();
});

const TEXT = '[[providers]]\nuse = "openai"\n';

async function running(file: { text: string } = { text: TEXT }) {
  const listed = createListedConfig({
    load: (text, offered = []) =>
      loadConfig({
        file: 'x.toml',
        text,
        offered,
        env: { OPENAI_API_KEY: 'sk-x', OPENAI_BASE_URL: provider.url },
        mode: 'production',
      }),
    providersOf: ({ providers }) => providers,
    readText: () => file.text,
  });
  await listed.read();
  const taken: string[][] = [];
  const warned: string[] = [];
  let asked = 0;
  const counted = {
    offers: listed.offers,
    askAgain: () => listed.askAgain().finally(() => (asked += 1)),
  };
  const kept = keepListed(counted, {
    take: async () => void taken.push((await listed.current()).services.map(({ service }) => service.name)),
    warn: (line) => warned.push(line),
  });
  /** Lets this time pass, and waits until the providers were asked so often and the next timer is set. */
  const pass = async (ms: number, asks = 1) => {
    const before = asked;
    await vi.advanceTimersByTimeAsync(ms);
    await vi.waitFor(() => expect(asked).toBe(before + asks), { timeout: 60_000 });
    await setImmediate();
  };
  return { listed, taken, warned, kept, pass };
}

it('asks every ten minutes, and takes a change once', async () => {
  const { taken, warned, kept, pass } = await running();
  await pass(9 * MINUTE_MS, 0);
  await pass(MINUTE_MS);
  expect(taken).toEqual([]);
  provider.list({ json: { data: [{ id: 'gpt-5' }, { id: 'gpt-5-mini' }] } });
  await pass(10 * MINUTE_MS);
  await pass(10 * MINUTE_MS);
  expect(taken).toEqual([['openai/gpt-5', 'openai/gpt-5-mini']]);
  expect(warned).toEqual([]);
  kept.stop();
  await pass(60 * MINUTE_MS, 0);
});

it('asks soon again while the provider is away, keeps its models, and says so once', async () => {
  const { taken, warned, pass } = await running();
  provider.list({ status: 503, json: {} });
  await pass(10 * MINUTE_MS);
  await pass(30_000);
  await pass(30_000);
  expect(warned).toEqual([expect.stringMatching(/answered 503 .* the models that it listed before are offered/)]);
  provider.list({ json: { data: [{ id: 'gpt-5-mini' }] } });
  await pass(30_000);
  expect(taken).toEqual([['openai/gpt-5-mini']]);
});

it('an edit of the file waits for its reload', async () => {
  const file = { text: TEXT };
  const { listed, taken, pass } = await running(file);
  file.text = `${TEXT}except = ["*"]\n`;
  provider.list({ json: { data: [{ id: 'gpt-5' }, { id: 'o3' }] } });
  await pass(10 * MINUTE_MS);
  expect(taken).toEqual([['openai/gpt-5', 'openai/o3']]);
  expect((await listed.read()).services).toEqual([]);
  // A file with a mistake changes nothing.
  file.text = `${TEXT}markup = 5\n`;
  await expect(listed.read()).rejects.toThrow('markup');
  expect((await listed.current()).services).toEqual([]);
});
