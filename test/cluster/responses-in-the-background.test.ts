import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { startCluster, until, type Cluster } from '../support/cluster.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startPostgres } from '../support/postgres.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { IDENTITY_SEED, modelBlock, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Responses in the background at several gateways of one database, and at gateways that stop or are killed.

type Response = OpenAI.Responses.Response;
type Event = OpenAI.Responses.ResponseStreamEvent;
const clientOf = (baseURL: string, apiKey: string) => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const begin = (by: OpenAI, input: string) =>
  by.responses.create({ model: MODEL, input, max_output_tokens: 1_000, background: true });
const isUnderWay = ({ status }: Response) => status === 'queued' || status === 'in_progress';
async function reaches(by: OpenAI, id: string, status: Response['status']): Promise<Response> {
  let shown = await by.responses.retrieve(id);
  const isSo = async () => (shown = await by.responses.retrieve(id)).status === status;
  await until(isSo, `the response is ${status}`);
  return shown;
}
/** The first events of a streamed response, until its model says something. The connection is then lost. */
async function firstEvents(by: OpenAI, input: string): Promise<{ readonly id: string; readonly events: Event[] }> {
  const events: Event[] = [];
  const body = { model: MODEL, input, max_output_tokens: 1_000, background: true as const, stream: true as const };
  for await (const event of await by.responses.create(body)) {
    events.push(event);
    if (event.type === 'response.output_text.delta') break;
  }
  return { id: (events[0] as OpenAI.Responses.ResponseCreatedEvent).response.id, events };
}
async function rest(by: OpenAI, id: string, before: readonly Event[]): Promise<readonly Event[]> {
  const events = [...before];
  const after = before.at(-1)!.sequence_number;
  for await (const event of await by.responses.retrieve(id, { stream: true, starting_after: after }))
    events.push(event);
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
  return events;
}

describe('gateways of one database', () => {
  let cluster: Cluster<Spine>;
  let one: OpenAI;
  let other: OpenAI;
  beforeAll(async () => {
    cluster = await startCluster({
      postgresUrl: inject('postgresUrl'),
      size: 2,
      toml: `${UNHURRIED}drain_on_shutdown_ms = 100\n[billing]\ndrain_ms = 300\n`,
    });
    [one, other] = cluster.gateways.map(({ url, key }) => clientOf(url, key)) as [OpenAI, OpenAI];
  });
  afterAll(async () => {
    try {
      expect(await cluster?.gateways[0]!.faults()).toEqual([]);
    } finally {
      await cluster?.stop();
    }
  });

  test('each of them shows a response, and streams it from where it was lost', async () => {
    const { id, events } = await firstEvents(one, '!tokens:60 !token-ms:20');
    expect(isUnderWay(await other.responses.retrieve(id))).toBe(true);
    const all = await rest(other, id, events);
    expect(all.at(-1)!.type).toBe('response.completed');
    expect((await other.responses.retrieve(id)).status).toBe('completed');
    expect(await rest(one, id, events)).toEqual(all);
  });

  test('each of them cancels it, and it ends where it is made', async () => {
    const { id } = await begin(one, '!tokens:1000 !token-ms:20');
    await reaches(other, id, 'in_progress');
    const cancelled = await other.responses.cancel(id);
    expect(cancelled).toMatchObject({ status: 'cancelled', output: [{ type: 'message', status: 'incomplete' }] });
    await until(async () => (await other.responses.retrieve(id)).usage !== null, 'its cost is known');
    expect(await one.responses.cancel(id)).toMatchObject({
      id,
      status: 'cancelled',
      usage: { cost: expect.any(Number) },
    });
    await until(() => cluster.provider.log.at(-1)!.end === 'client_closed', 'its provider is left');
  });

  test('each of them deletes it, and it ends where it is made', async () => {
    const { id } = await begin(one, '!tokens:1000 !token-ms:20');
    await reaches(other, id, 'in_progress');
    await other.responses.delete(id);
    await expect(one.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    await until(() => cluster.provider.log.at(-1)!.end === 'client_closed', 'its provider is left');
    await cluster.gateways[0]!.quiet();
  });

  test('one that stops waits a while, and then keeps what came, which is charged', async () => {
    const stopping = await cluster.add();
    cluster.forget(stopping);
    const by = clientOf(stopping.url, stopping.key);
    const said = await begin(by, '!tokens:1000 !token-ms:20');
    await until(() => (cluster.provider.log.at(-1)?.completionTokens ?? 0) > 5, 'its model says something');
    const silent = await begin(by, '!head-delay:forever');
    await until(
      () => cluster.provider.log.length > 0 && cluster.provider.log.at(-1)!.behaviour.headDelayMs > 0,
      'it is asked',
    );
    await stopping.stop();
    const cut = (await one.responses.retrieve(said.id)) as Response & {
      readonly tollgate: { readonly note: { readonly message: string } };
    };
    expect(cut).toMatchObject({ error: null, status: 'incomplete', output: [{ status: 'incomplete' }] });
    expect(cut.tollgate.note.message).toContain('the gateway stopped');
    expect(await cluster.gateways[0]!.generation(said.id.replace('resp_', 'gen-'))).toMatchObject({ state: 'settled' });
    expect(await one.responses.retrieve(silent.id)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: expect.stringContaining('The gateway stopped') },
    });
    // Nobody has left it, so its input is not charged either.
    const unsaid = await cluster.gateways[0]!.generation(silent.id.replace('resp_', 'gen-'));
    expect(unsaid).toMatchObject({ state: expect.not.stringMatching('held'), cost_micro_usdc: 0 });
  });
});

test('a gateway that was out of reach gives its response an end after all', async () => {
  const database = await freshDatabase(inject('postgresUrl'));
  const provider = await startProvider();
  const own = { databaseUrl: database.url, provider, toml: UNHURRIED };
  const making = await startSpine(own);
  // For this one the time in which the other has said that it is there is over.
  const late = await startSpine({ ...own, now: () => Date.now() + 61_000, elapsed: () => performance.now() });
  try {
    const { id } = await begin(clientOf(making.url, making.key), '!tokens:60 !token-ms:15');
    const other = clientOf(late.url, late.key);
    expect(await other.responses.retrieve(id)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect((await reaches(other, id, 'completed')).output_text.length).toBeGreaterThan(0);
    expect(await making.faults()).toEqual([]);
  } finally {
    await making.stop();
    await late.stop();
    await provider.stop();
    await database.drop();
  }
});

test('a database that restarts loses no response and no event', async () => {
  const postgres = await startPostgres();
  const provider = await startProvider();
  const database = await freshDatabase(postgres.url);
  const spine = await startSpine({ databaseUrl: database.url, provider, toml: UNHURRIED });
  try {
    const by = clientOf(spine.url, spine.key);
    const { id, events } = await firstEvents(by, '!tokens:100 !token-ms:20');
    const { id: unstreamed } = await begin(by, '!tokens:100 !token-ms:20');
    await postgres.kill9();
    await until(() => provider.log.length === 2 && provider.log.every(({ end }) => end !== null), 'both have ended');
    await postgres.restart();
    const shown = () => by.responses.retrieve(id).catch(() => null);
    await until(async () => (await shown())?.status === 'completed', 'its end is stored');
    expect((await reaches(by, unstreamed, 'completed')).output_text.length).toBeGreaterThan(0);
    expect((await rest(by, id, events)).at(-1)!.type).toBe('response.completed');
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await provider.stop();
    await postgres.stop();
  }
});

describe('a gateway that is killed', () => {
  const KEPT = `${UNHURRIED}[upstream]\ncall_timeout_ms = 20000\n[billing]\nsweep_ms = 200\ndrain_ms = 1000\n`;
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function start(databaseUrl?: string): Promise<{ readonly gateway: Gateway; readonly provider: TestProvider }> {
    const provider = await startProvider();
    closing.push(() => provider.stop());
    const gateway = await startGateway({
      toml: KEPT + modelBlock({ provider: 'Test', url: provider.url }),
      env: { TOLLGATE_IDENTITY_SEED: IDENTITY_SEED, TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
      ...(databaseUrl === undefined ? {} : { databaseUrl }),
    });
    closing.push(() => gateway.stop());
    return { gateway, provider };
  }

  test('and starts again has no response under way, and no money locked', async () => {
    const { gateway } = await start();
    const { key } = await gateway.openAccount('caller', 1);
    const client = () => clientOf(`${gateway.baseUrl}/api/v1`, key);
    const { id, events } = await firstEvents(client(), '!tokens:1000 !token-ms:20');
    const { id: unstreamed } = await begin(client(), '!tokens:1000 !token-ms:20');
    await gateway.kill9();
    await gateway.restart();
    for (const lost of [id, unstreamed])
      expect(await client().responses.retrieve(lost)).toMatchObject({
        id: lost,
        status: 'failed',
        background: true,
        error: { code: 'server_error', message: expect.stringContaining(lost.replace('resp_', 'gen-')) },
      });
    expect((await rest(client(), id, events)).at(-1)!.type).toBe('response.failed');
    await expect(client().responses.cancel(id)).rejects.toMatchObject({ status: 400 });
    const balance = await fetch(`${gateway.baseUrl}/api/v1/session/balance`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await balance.json()).toMatchObject({ locked_micro_usdc: 0, balance_micro_usdc: 1_000_000 });
  });

  test('is noticed by another one after a minute', async () => {
    const database = await freshDatabase(inject('postgresUrl'));
    closing.push(() => database.drop());
    const { gateway, provider } = await start(database.url);
    let late = 0;
    const other = await startSpine({
      databaseUrl: database.url,
      provider,
      toml: KEPT,
      now: () => Date.now() + late,
      elapsed: () => performance.now() + late,
    });
    closing.push(() => other.stop());
    const client = clientOf(other.url, other.key);
    const { id, events } = await firstEvents(
      clientOf(`${gateway.baseUrl}/api/v1`, other.key),
      '!tokens:1000 !token-ms:20',
    );
    const { id: cancelled } = await begin(
      clientOf(`${gateway.baseUrl}/api/v1`, other.key),
      '!tokens:1000 !token-ms:20',
    );
    await gateway.kill9();
    expect(isUnderWay(await client.responses.retrieve(id))).toBe(true);
    const following = rest(client, id, events);
    late = 61_000;
    expect((await following).at(-1)!.type).toBe('response.failed');
    await reaches(client, id, 'failed');
    await reaches(client, cancelled, 'failed');
    // The locks of its calls are given back when they could have ended at the latest.
    late = 200_000;
    await until(async () => (await other.balance()).locked === 0n, 'the locks are given back');
    expect(await other.faults()).toEqual([]);
  });
});
