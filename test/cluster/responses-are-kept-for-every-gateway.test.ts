import OpenAI from 'openai';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { modelBlock, UNHURRIED, type Spine } from '../support/spine.ts';
import {
  completion,
  startTranscripts,
  type TranscriptUpstream,
} from '../openai/translated/support/transcript-upstream.ts';

// Responses that one gateway keeps are found, continued and deleted at another one, on PostgreSQL.

const MODEL = 'acme/thinker';
const COUNT_MAX = 20;
let upstream: TranscriptUpstream;
let cluster: Cluster<Spine>;
let one: OpenAI;
let other: OpenAI;
beforeAll(async () => {
  upstream = await startTranscripts();
  upstream.answer = () => ({ body: completion({ content: 'Good morning' }) });
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    redisUrl: inject('redisUrl'),
    toml:
      `${UNHURRIED}[responses]\naccount_count_max = ${COUNT_MAX}\n` +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }),
  });
  [one, other] = cluster.gateways.map(({ url, key }) => new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 })) as [
    OpenAI,
    OpenAI,
  ];
});
afterAll(async () => {
  try {
    expect(await cluster?.gateways[0]!.faults()).toEqual([]);
  } finally {
    await cluster?.stop();
    await upstream?.stop();
  }
});

const create = (by: OpenAI, more: object = {}) => by.responses.create({ model: MODEL, input: 'Hi', ...more });
const said = () => (upstream.asked.at(-1)!['messages'] as { content: string }[]).map(({ content }) => content);

test('a conversation goes on at any gateway', async () => {
  const first = await create(one, { instructions: 'Be brief.' });
  expect((await other.responses.retrieve(first.id)).output).toEqual(first.output);
  const second = await create(other, { input: 'And then?', previous_response_id: first.id });
  const third = await create(one, { input: 'Last one', previous_response_id: second.id });
  expect(said()).toEqual(['Hi', 'Good morning', 'And then?', 'Good morning', 'Last one']);
  const { data } = await other.responses.inputItems.list(third.id, { order: 'asc' });
  expect(data).toHaveLength(5);

  const reference = { type: 'item_reference' as const, id: third.output[0]!.id! };
  await create(other, { input: [reference, { role: 'user', content: 'again' }] });
  expect(said()).toEqual(['Good morning', 'again']);
});

test('what one gateway deletes is gone at the other', async () => {
  const { id } = await create(one);
  await other.responses.delete(id);
  await expect(one.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  await expect(create(one, { previous_response_id: id })).rejects.toMatchObject({ status: 400 });
});

test('an account’s share is one for all gateways', async () => {
  const ids: string[] = [];
  for (let at = 0; at < 2 * COUNT_MAX; at += 1) ids.push((await create(at % 2 === 0 ? one : other)).id);
  const kept = await Promise.all(ids.map((id) => one.responses.retrieve(id).then(Boolean, () => false)));
  const firstKept = kept.indexOf(true);
  expect(kept.slice(firstKept)).not.toContain(false);
  // Each gateway checks the bound after an eighth of it.
  expect(kept.length - firstKept).toBeLessThanOrEqual(COUNT_MAX + 6);
  expect(kept.length - firstKept).toBeGreaterThanOrEqual(COUNT_MAX - 6);
});

test('a client that creates at both at once loses nothing', async () => {
  const made = await Promise.all(Array.from({ length: 8 }, (_, at) => create(at % 2 === 0 ? one : other)));
  for (const { id } of made) expect((await other.responses.retrieve(id)).id).toBe(id);
});
