import { expect, inject, onTestFinished, test } from 'vitest';
import { begin, chatLine, clientAt, ended, until } from '../openai/batches/support/batch-client.ts';
import { startBatchProvider, textOf, type BatchProvider } from '../support/batch-provider.ts';
import { BOTH_ENGINES, type EngineName } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { modelBlock, startSpine, UNHURRIED } from '../support/spine.ts';

// A provider has room for so many requests in batches. A greedy account fills it, and another one has a batch too.

const HOUR_MS = 3_600_000;
const LIVE: readonly string[] = ['validating', 'in_progress', 'cancelling'];

async function world(engine: EngineName, batches = '') {
  const provider = await startBatchProvider();
  const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
  let late = 0;
  const spine = await startSpine({
    now: () => Date.now() + late,
    ...(database === null ? {} : { databaseUrl: database.url }),
    toml:
      `${UNHURRIED}[batches]\nprovider_look_ms = 20\n${batches}\n` +
      modelBlock({
        name: 'lot/model',
        provider: 'Lot',
        url: provider.url,
        pricing: 'service_tiers = { batch = { prompt = 0.5, completion = 1 } }',
        params: 'batches = true',
      }),
  });
  onTestFinished(async () => {
    await spine.stop();
    await provider.stop();
    await database?.drop();
  });
  const clientOf = async (name: string) => clientAt(`${spine.origin}/v1`, (await spine.tenant(name, '5')).key);
  return {
    provider,
    spine,
    greedy: await clientOf('greedy'),
    patient: await clientOf('patient'),
    /** An hour later. */
    pass: () => (late += HOUR_MS),
  };
}

/** A batch of one line with this name, which has about 1,000 bytes. */
const batchOf = (client: ReturnType<typeof clientAt>, name: string) =>
  begin(client, [chatLine('a', `${name} ${'x'.repeat(700)}`, { model: 'lot/model' })]);
const live = ({ batches }: BatchProvider) => batches.filter(({ status }) => LIVE.includes(status));
const nameOf = ({ lines }: BatchProvider['batches'][number]) => textOf(lines[0]!).split(' ')[0];

test.each(BOTH_ENGINES)('an account has at most as much of a queue as it leaves free: %s', async (engine) => {
  const { provider, spine, greedy, patient } = await world(engine, 'provider_bytes_max = 4000');
  const many = await Promise.all(Array.from({ length: 6 }, () => batchOf(greedy, 'greedy')));
  // At least: more than the share must be a difference, and not a long wait.
  await until(() => provider.batches.length >= 2);
  const one = await batchOf(patient, 'other');
  await until(() => provider.batches.length >= 3);
  expect(provider.batches.map(nameOf)).toEqual(['greedy', 'greedy', 'other']);
  // What is cancelled has its room until the provider has ended it, and costs what it has made.
  await Promise.all(many.map(({ id }) => greedy.batches.cancel(id)));
  await until(() => live(provider).filter(({ status }) => status === 'cancelling').length === 2);
  const again = await batchOf(greedy, 'again');
  provider.end(provider.batches[2]!, 'completed');
  expect(await ended(patient, one.id)).toMatchObject({ status: 'completed', request_counts: { completed: 1 } });
  expect(provider.batches).toHaveLength(3);
  for (const there of provider.batches.slice(0, 2)) provider.end(there, 'cancelled');
  await until(() => provider.batches.length === 4);
  provider.end(provider.batches[3]!, 'completed');
  expect(await ended(greedy, again.id)).toMatchObject({ status: 'completed' });
  const ends = await Promise.all(many.map(({ id }) => ended(greedy, id)));
  expect(ends.map(({ status }) => status)).toEqual(many.map(() => 'cancelled'));
  expect(ends.reduce((sum, { request_counts: counts }) => sum + counts!.completed, 0)).toBe(2);
  expect(await spine.faults()).toEqual([]);
});

test('a queue that was full is shared out from then on', async () => {
  const { provider, spine, greedy, patient, pass } = await world('sqlite');
  // The provider has room for four, and says so only when a batch was created.
  provider.after = (method, path) => {
    if (method === 'POST' && path === '/batches' && live(provider).length > 4) {
      const errors = { data: [{ code: 'token_limit_exceeded', message: 'Enqueued token limit reached' }] };
      Object.assign(provider.batches.at(-1)!, { status: 'failed', errors });
    }
    return undefined;
  };
  for (let count = 0; count < 5; count += 1) await batchOf(greedy, 'greedy');
  await until(() => live(provider).length === 4 && provider.batches.length === 5);
  // The gateway has seen it.
  await until(() => provider.files.size === 4);
  const one = await batchOf(patient, 'other');
  pass();
  await until(async () => (await patient.batches.retrieve(one.id)).status === 'in_progress');
  // Now both wait for room, and the patient account has none there yet.
  provider.end(live(provider)[0]!, 'completed');
  await until(() => provider.batches.length >= 6);
  expect([nameOf(provider.batches.at(-1)!), provider.batches.length, live(provider).length]).toEqual(['other', 6, 4]);
  while (provider.batches.length < 7 || live(provider).length > 0)
    for (const there of await untilSome(() => live(provider))) provider.end(there, 'completed');
  expect(await ended(patient, one.id)).toMatchObject({ status: 'completed' });
  expect(await spine.faults()).toEqual([]);
});

async function untilSome<T>(find: () => readonly T[]): Promise<readonly T[]> {
  await until(() => find().length > 0);
  return find();
}
