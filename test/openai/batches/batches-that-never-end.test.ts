import type OpenAI from 'openai';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { completionOf, resultOf, startBatchProvider, type BatchProvider } from '../../support/batch-provider.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf, until } from './support/batch-client.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// A provider that is asked to cancel its batch has half an hour to end it. After that, what it may bill is charged.

const MODEL = 'lot/model';
const HALF_AN_HOUR_MS = 30 * 60_000;
const DAY_MS = 24 * 60 * 60_000;
/** 11 prompt tokens at 0.5 and 5 completion tokens at 1 USD per 1M: 10.5 micro-USD, rounded up. */
const COST = 11n;
/** A prompt of 400 letters is 100 tokens and those of its message, at 0.5 USD per 1M. */
const INPUT_LEAST = 50n;
const INPUT_MOST = 60n;
let client: OpenAI;
let later = 0;
const provider = ofFile(startBatchProvider, (one) => one.stop());
const spine = spineOfFile(() => {
  const model = { name: MODEL, provider: 'Lot', url: provider.url, prompt: 1, completion: 2, lines: '' };
  const pricing = 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }';
  return {
    toml: `${UNHURRIED}[batches]\nprovider_look_ms = 20\n${modelBlock({ ...model, pricing, params: 'batches = true' })}`,
    now: () => Date.now() + later,
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(() => {
  provider.batches.length = 0;
  provider.intercept = null;
});

const line = (name: string) => chatLine(name, 'word'.repeat(100), { model: MODEL });
type There = BatchProvider['batches'][number];

/** Sends lines and ends their time in this way, and does `meanwhile` before the provider has had its half hour. */
async function giveUp(how: 'cancelled' | 'expired', meanwhile: (there: There) => void = () => {}) {
  await spine.quiet();
  const before = await spine.balance();
  const { id } = await begin(client, ['a', 'b', 'c', 'd'].map(line));
  await until(() => provider.batches.length > 0);
  const there = provider.batches[0]!;
  if (how === 'cancelled') await client.batches.cancel(id);
  else later += DAY_MS;
  await until(() => there.status === 'cancelling');
  meanwhile(there);
  later += HALF_AN_HOUR_MS;
  const batch = await ended(client, id);
  expect(batch.status).toBe(how);
  const { output, errors } = await resultsOf(client, batch);
  const { available, locked } = await spine.balance();
  expect(locked).toBe(0n);
  return { output, errors, cost: before.available - available };
}

const late = (name: string) => ({ custom_id: name, error: { code: 'provider_late' } });

test.each(['cancelled', 'expired'] as const)(
  'the input of each line is charged if the provider never ends a batch that is %s',
  async (how) => {
    const { errors, cost } = await giveUp(how);
    expect(errors).toMatchObject(['a', 'b', 'c', 'd'].map(late));
    expect(errors[0]!.error!.message).toContain('what the request takes was charged');
    expect(cost).toBeGreaterThanOrEqual(4n * INPUT_LEAST);
    expect(cost).toBeLessThanOrEqual(4n * INPUT_MOST);
  },
);

test('of a provider that counts, so many lines are charged as it says that it has done', async () => {
  const { errors, cost } = await giveUp('cancelled', (there) =>
    Object.assign(there, { request_counts: { total: 4, completed: 1, failed: 0 } }),
  );
  expect(errors).toMatchObject([late('a')]);
  expect(cost).toBeGreaterThanOrEqual(INPUT_LEAST);
  expect(cost).toBeLessThanOrEqual(INPUT_MOST);
});

test('what it has answered by then costs what it reports', async () => {
  const { output, errors, cost } = await giveUp('cancelled', (there) => {
    const counted = Object.assign(there, { request_counts: { total: 4, completed: 3, failed: 0 } });
    provider.end(counted, 'cancelling', (each) =>
      there.lines.indexOf(each) < 2 ? resultOf(each, completionOf('made')) : null,
    );
  });
  expect(output.map(({ custom_id: name }) => name)).toEqual(['a', 'b']);
  expect(errors).toMatchObject([late('c')]);
  expect(cost).toBeGreaterThanOrEqual(2n * COST + INPUT_LEAST);
  expect(cost).toBeLessThanOrEqual(2n * COST + INPUT_MOST);
});

test('answers that are seen when the half hour is over are read all the same', async () => {
  const { output, cost } = await giveUp('cancelled', (there) => {
    const before = later;
    // Nothing is seen of its end before.
    provider.intercept = (method, path) => {
      if (method !== 'GET' || path !== `/batches/${there.id}` || later > before) return undefined;
      return { status: 503 };
    };
    provider.end(there, 'cancelled', (each) => resultOf(each, completionOf('made')));
  });
  expect(output).toHaveLength(4);
  expect(cost).toBe(4n * COST);
});

test('a provider that cannot be asked any more has failed, and is not paid', async () => {
  const { errors, cost } = await giveUp('cancelled', () => {
    provider.intercept = () => ({ status: 503 });
  });
  expect(errors).toEqual([]);
  expect(cost).toBe(0n);
});
