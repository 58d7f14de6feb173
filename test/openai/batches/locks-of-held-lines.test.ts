import type OpenAI from 'openai';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { LedgerUnavailable } from '#billing';
import { Claim } from '../../../src/openai/batch-jobs/claim.ts';
import { startBatchProvider } from '../../support/batch-provider.ts';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { begin, chatLine, clientAt, ended, resultsOf } from './support/batch-client.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// The lock of a line that a provider gets in a batch must live as long as that batch. If it cannot be kept, the line is
// locked anew, and nothing of the first lock remains.

let client: OpenAI;
const provider = ofFile(startBatchProvider, (one) => one.stop());
const spine = spineOfFile(() => {
  provider.isEager = true;
  const pricing = 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }';
  const model = { name: 'lot/model', provider: 'Lot', url: provider.url, prompt: 1, completion: 2 };
  return {
    toml: `${UNHURRIED}[batches]\nprovider_look_ms = 20\n${modelBlock({ ...model, pricing, lines: '', params: 'batches = true' })}`,
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});
beforeEach(() => {
  // The pauses between the attempts of a line, which take 26 seconds.
  vi.spyOn(Claim.prototype, 'rest').mockResolvedValue();
  provider.single.length = provider.batches.length = 0;
});

/** 11 prompt tokens at 0.5 and 5 completion tokens at 1, rounded up. */
const COST = 11n;
/** A line is tried four times in all. */
const ATTEMPTS = 4;

test.each([
  ['has ended', async () => ({ ok: false, reason: 'not_found' }) as const],
  ['cannot be reached', () => Promise.reject(new LedgerUnavailable('away'))],
])('a lock that %s when it is to be kept is given back, and the line is locked again', async (_, fail) => {
  const before = await spine.balance();
  const { ledger } = spine.app;
  const { keep } = ledger;
  const failed: string[] = [];
  let batchLock: string | null = null;
  vi.spyOn(ledger, 'keep').mockImplementation(async (id, until) => {
    batchLock ??= id;
    if (id === batchLock || failed.length > 0) return keep(id, until);
    failed.push(id);
    return fail();
  });
  const { id } = await begin(client, [chatLine('a', 'ping !tokens:5', { model: 'lot/model' })]);
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 1, failed: 0 } });
  expect(failed).toHaveLength(1);
  expect(await ledger.find(failed[0]!)).toMatchObject({ state: 'released', charged: 0n });
  expect(provider.batches).toHaveLength(1);
  const [sent] = provider.batches[0]!.lines;
  expect(sent!.custom_id).not.toBe(failed[0]);
  expect(provider.single).toEqual([]);
  expect(await spine.balance()).toEqual({ available: before.available - COST, locked: 0n });
});

test('a line whose lock can never be kept ends with an error, free, and no provider gets it', async () => {
  const before = await spine.balance();
  const { ledger } = spine.app;
  const { keep } = ledger;
  const locks: string[] = [];
  vi.spyOn(ledger, 'keep').mockImplementation(async (id, until) => {
    locks.push(id);
    return locks[0] === id ? keep(id, until) : { ok: false, reason: 'not_found' };
  });
  const { id } = await begin(client, [chatLine('a', 'ping !tokens:5', { model: 'lot/model' })]);
  const batch = await ended(client, id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: 0, failed: 1 } });
  expect((await resultsOf(client, batch)).errors).toMatchObject([{ response: { status_code: 503 } }]);
  expect(new Set(locks.slice(1)).size).toBe(ATTEMPTS);
  for (const lock of locks.slice(1)) expect(await ledger.find(lock)).toMatchObject({ state: 'released' });
  expect([...provider.batches, ...provider.single]).toEqual([]);
  expect(await spine.balance()).toEqual({ available: before.available, locked: 0n });
});
