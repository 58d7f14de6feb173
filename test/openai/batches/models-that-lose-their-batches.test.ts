import type OpenAI from 'openai';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { startBatchProvider } from '../../support/batch-provider.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from './support/batch-client.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Lines that their provider does not have yet when their model takes no batches any more go the way of all others.

const MODEL = 'lot/model';
let client: OpenAI;

/** `pricing`, `params`: those of batches, unless they are gone. */
const toml = ({ name = MODEL, pricing = 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }' } = {}) => {
  const params = pricing === '' ? '' : 'batches = true';
  const model = { name, provider: 'Lot', url: provider.url, prompt: 1, completion: 2, lines: '', pricing, params };
  return `${UNHURRIED}[batches]\nprovider_look_ms = 20\n${modelBlock(model)}`;
};

/** The gateway takes this configuration. */
async function reload(text: string): Promise<void> {
  spine.writeFile(text);
  const headers = { authorization: `Bearer ${spine.adminKey}` };
  expect((await fetch(`${spine.origin}/admin/v1/reload`, { method: 'POST', headers })).status).toBe(200);
}

const provider = ofFile(startBatchProvider, (one) => one.stop());
const spine = spineOfFile(() => ({ toml: toml() }));
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(async () => {
  provider.log.length = provider.single.length = provider.batches.length = 0;
  provider.intercept = null;
  await reload(toml());
});

const line = (customId: string, more: object = {}) => chatLine(customId, 'ping !tokens:5', { model: MODEL, ...more });

test('they are called one by one once their model has no price for batches, within max_price', async () => {
  const before = await spine.balance();
  provider.intercept = (method, path) => (method === 'POST' && path === '/files' ? { status: 503 } : undefined);
  const max = { provider: { max_price: { prompt: 0.5, completion: 1 } } };
  const { id } = await begin(client, [line('a'), line('b'), line('c', max)]);
  await until(() => provider.log.includes('POST /files'));
  await reload(toml({ pricing: '' }));
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 2, failed: 1 } });
  const { errors } = await resultsOf(client, batch);
  expect(errors).toMatchObject([{ custom_id: 'c', response: { status_code: 404 } }]);
  expect(errors[0]!.response!.body.error!.message).toContain('max_price');
  expect(provider.single).toHaveLength(2);
  expect(provider.batches).toEqual([]);
  // 11 prompt tokens at 1 and 5 completion tokens at 2.
  expect(await spine.balance()).toEqual({ available: before.available - 2n * 21n, locked: 0n });
});

test('they get the error of the routing once their model is gone, free', async () => {
  const before = await spine.balance();
  provider.intercept = (method, path) => (method === 'POST' && path === '/batches' ? { status: 429 } : undefined);
  const { id } = await begin(client, [line('a'), line('b')]);
  await until(() => provider.log.includes('POST /batches'));
  await reload(toml({ name: 'lot/other' }));
  const { errors } = await resultsOf(client, await ended(client, id));
  expect(errors).toMatchObject([{ response: { status_code: 404 } }, { response: { status_code: 404 } }]);
  expect(errors[0]!.response!.body.error!.message).toContain(MODEL);
  expect(await spine.balance()).toEqual({ available: before.available, locked: 0n });
});
