import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../support/cluster.ts';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  call,
  chunk,
  completion,
  startTranscripts,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// Responses with `background: true`, with OpenAI's SDK as it is on npm.

const COUNT_MAX = 3;
/** How long a provider is read on after a response was cancelled. */
const DRAIN_MS = 300;
const CALLER = 'acme/caller';
let spine: Spine;
let client: OpenAI;
let tools: RawMcp;
let caller: TranscriptUpstream;
beforeAll(async () => {
  caller = await startTranscripts();
  tools = await startRawMcp(
    () => '{"resultType":"complete","content":[{"type":"text","text":"noon"}]}',
    ['{"name":"hour","inputSchema":{"type":"object"}}'],
  );
  const kit = `[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
  const model = modelBlock({ name: CALLER, provider: 'Acme', url: caller.url });
  spine = await startSpine({
    toml: `${UNHURRIED}[billing]\ndrain_ms = ${DRAIN_MS}\n[responses]\nbackground_count_max = ${COUNT_MAX}\n${kit}${model}`,
  });
  client = clientOf(spine.key);
});
beforeEach(() => {
  spine.provider.log.length = 0;
});
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await Promise.all([tools.close(), caller.stop()]);
  }
});

type Shown = OpenAI.Responses.Response & {
  readonly usage?: { readonly cost?: number };
  readonly tollgate?: { readonly note?: { readonly message: string } };
};
const clientOf = (apiKey: string) => new OpenAI({ baseURL: spine.url, apiKey, maxRetries: 0 });
const begin = (input: string, more: object = {}, by = client) =>
  by.responses.create({ model: MODEL, input, max_output_tokens: 1_000, ...more, background: true }) as Promise<Shown>;
const retrieve = (id: string, by = client) => by.responses.retrieve(id) as Promise<Shown>;
const isUnderWay = ({ status }: Shown) => status === 'queued' || status === 'in_progress';
/** A response at its end, as a client that polls sees it. */
async function ended(id: string, by = client): Promise<Shown> {
  let shown = await retrieve(id, by);
  await until(async () => !isUnderWay((shown = await retrieve(id, by))), 'the response has ended');
  return shown;
}
const refusal = async (request: Promise<unknown>) => {
  const error: unknown = await request.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof OpenAI.APIError)) throw new Error('it was not refused', { cause: error });
  return { status: error.status as number, message: (error.error as { message: string }).message, param: error.param };
};
const callOf = (id: string) => id.replace('resp_', 'gen-');

describe('a response in the background', () => {
  test('is answered before its model has said anything, and polled until it has ended', async () => {
    let answer = () => {};
    spine.provider.hold(new Promise<void>((resolve) => (answer = resolve)));
    const begun = await begin('!tokens:5', { metadata: { a: 'b' } });
    expect(begun).toMatchObject({ status: 'queued', background: true, store: true, output: [], usage: null });
    expect(await retrieve(begun.id)).toMatchObject({ status: 'queued', metadata: { a: 'b' } });
    expect((await spine.balance()).locked).toBeGreaterThan(0n);
    spine.provider.hold(null);
    answer();
    const shown = await ended(begun.id);
    expect(shown).toMatchObject({ id: begun.id, status: 'completed', background: true, metadata: { a: 'b' } });
    expect(shown.output_text.length).toBeGreaterThan(0);
    const generation = await spine.generation(callOf(begun.id));
    expect(generation).toMatchObject({ state: 'settled' });
    expect(shown.usage!.cost).toBeGreaterThan(0);
    expect((await spine.balance()).locked).toBe(0n);
  });

  test('is in_progress as soon as its provider answers', async () => {
    const { id } = await begin('!tokens:200 !token-ms:50');
    await until(async () => (await retrieve(id)).status === 'in_progress', 'it has begun');
    await client.responses.cancel(id);
  });

  test('fails with the error of its provider, and costs nothing', async () => {
    const { id } = await begin('!status:400');
    const shown = await ended(id);
    expect(shown).toMatchObject({ status: 'failed', output: [], error: { code: 'invalid_prompt' } });
    const { id: busy } = await begin('!status:500');
    expect(await ended(busy)).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(shown.error!.message.length).toBeGreaterThan(10);
    expect(await spine.generation(callOf(id))).toMatchObject({ state: 'released' });
  });

  test('can be continued when it has ended, and not before', async () => {
    const { id } = await begin('!tokens:200 !token-ms:20');
    expect(await refusal(begin('And then?', { previous_response_id: id }))).toMatchObject({
      status: 400,
      param: 'previous_response_id',
      message: expect.stringContaining('under way'),
    });
    await client.responses.cancel(id);
    const { id: first } = await begin('!tokens:3');
    await ended(first);
    const { id: second } = await begin('!tokens:3', { previous_response_id: first });
    expect(await ended(second)).toMatchObject({ status: 'completed', previous_response_id: first });
    const { data } = await client.responses.inputItems.list(second, { order: 'asc' });
    expect(data.map(({ type }) => type)).toEqual(['message', 'message', 'message']);
  });
});

describe('what else is called in the background', () => {
  test('a tool', async () => {
    const { id } = await begin('{}', { model: 'mcp/kit/hour', max_output_tokens: undefined });
    expect(await ended(id)).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'noon' }] }] });
    expect(await spine.generation(callOf(id))).toMatchObject({ state: 'settled', cost_micro_usdc: 1000 });
  });

  test('a model whose tools the gateway calls, with the cost of all calls', async () => {
    const asks = [call(0, { id: 'c0', name: 'kit__hour', args: '{}' }), chunk({}, 'tool_calls'), usage()];
    caller.answer = ({ messages }) => ({ chunks: (messages as unknown[]).length > 1 ? words('It is noon') : asks });
    const { id } = await begin('What time is it?', { model: CALLER, tools: [{ type: 'mcp', service: 'kit' }] });
    const shown = await ended(id);
    expect(shown).toMatchObject({ status: 'completed', output_text: 'It is noon' });
    expect(shown.usage!.cost).toBeGreaterThan(0.001);
  });

  test('also by JSON-RPC', async () => {
    const params = { model: MODEL, input: '!tokens:3', background: true };
    const answer = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'responses/create', params });
    const { result } = (await answer.json()) as { result: Shown };
    expect(result).toMatchObject({ status: 'queued', background: true });
    expect(await ended(result.id)).toMatchObject({ status: 'completed' });
  });

  test('also below /v1, with errors that have words as codes', async () => {
    const strict = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
    const { id } = await begin('!tokens:3', {}, strict);
    await ended(id, strict);
    await expect(strict.responses.cancel(id)).rejects.toMatchObject({ status: 400, code: 'invalid_request' });
    await expect(strict.responses.cancel(`${id}0`)).rejects.toMatchObject({ status: 404, code: 'not_found' });
  });
});

type Event = OpenAI.Responses.ResponseStreamEvent;
const stream = (input: string, more: object = {}) =>
  client.responses.create({ model: MODEL, input, max_output_tokens: 1_000, ...more, stream: true, background: true });
async function all(events: AsyncIterable<Event>): Promise<Event[]> {
  const seen: Event[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}
const textOf = (events: readonly Event[]) =>
  events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');

describe('the stream of a response in the background', () => {
  test('begins at once, has numbers without gaps, and is the same when it is asked for again', async () => {
    const events = await all(await stream('!tokens:40 !token-ms:5'));
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
    ]);
    const [{ response: first }, { response: last }] = [events[0], events.at(-1)] as [
      OpenAI.Responses.ResponseCreatedEvent,
      OpenAI.Responses.ResponseCompletedEvent,
    ];
    expect(first).toMatchObject({ status: 'queued', background: true, store: true });
    expect(last).toMatchObject({ id: first.id, status: 'completed', background: true });
    const { output_text: text, ...shown } = await retrieve(first.id);
    expect(shown).toEqual(last);
    expect(text).toBe(textOf(events));
    expect(await all(await client.responses.retrieve(first.id, { stream: true }))).toEqual(events);
    const after = events.length - 3;
    const rest = await all(await client.responses.retrieve(first.id, { stream: true, starting_after: after }));
    expect(rest).toEqual(events.slice(after + 1));
    const followed = client.responses.stream({ response_id: first.id, starting_after: after });
    expect((await followed.finalResponse()).output_text).toBe(text);
  });

  test('is taken up after it was lost, while the model goes on', async () => {
    const begun: Event[] = [];
    const lost = await stream('!tokens:60 !token-ms:15');
    for await (const event of lost) {
      begun.push(event);
      if (event.type === 'response.output_text.delta') break;
    }
    const { response } = begun[0] as OpenAI.Responses.ResponseCreatedEvent;
    expect(isUnderWay(await retrieve(response.id))).toBe(true);
    const rest = await client.responses.retrieve(response.id, {
      stream: true,
      starting_after: begun.at(-1)!.sequence_number,
    });
    const events = [...begun, ...(await all(rest))];
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
    expect(events.at(-1)!.type).toBe('response.completed');
    expect(textOf(events)).toBe((await retrieve(response.id)).output_text);
    expect(spine.provider.log).toHaveLength(1);
  });

  test('ends when the response is cancelled or deleted', async () => {
    for (const end of ['cancel', 'delete'] as const) {
      const events: Event[] = [];
      let id = '';
      for await (const event of await stream('!tokens:1000 !token-ms:15')) {
        if (event.type === 'response.created') id = event.response.id;
        if (events.push(event) === 6) await client.responses[end](id);
      }
      expect(events.at(-1)).toMatchObject({ type: 'response.incomplete', response: { id, status: 'cancelled' } });
      expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, at) => at));
      if (end === 'cancel') expect(await all(await client.responses.retrieve(id, { stream: true }))).toEqual(events);
      else expect(await refusal(client.responses.retrieve(id, { stream: true }))).toMatchObject({ status: 404 });
    }
  });

  test('fails with its response', async () => {
    const events = await all(await stream('!status:400'));
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.queued', 'response.failed']);
  });

  test('is of responses that were begun as streams', async () => {
    const { id } = await begin('!tokens:3');
    await ended(id);
    expect(await refusal(client.responses.retrieve(id, { stream: true }))).toMatchObject({
      status: 400,
      param: 'stream',
    });
    const answer = await spine.get(`/responses/${id}?starting_after=1`);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('stream=true');
  });
});

describe('who may begin one', () => {
  test('needs money at once, and a response that is refused is not kept', async () => {
    const poor = await spine.tenant('poor', '0.000001');
    expect(await refusal(begin('!tokens:5', {}, clientOf(poor.key)))).toMatchObject({ status: 402 });
    const rows = await spine.app.database.query(
      {
        name: 'test/background',
        text: 'SELECT id FROM kept_responses WHERE account = $1',
      },
      [poor.account],
    );
    expect(rows).toEqual([]);
  });

  test('a request that is not one is refused', async () => {
    const answer = await spine.post('/responses', { model: MODEL, input: 'Hi', background: 'yes' });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('background must be true or false');
    await expect(
      new OpenAI({ baseURL: spine.url, apiKey: 'svc-sk-none', maxRetries: 0 }).responses.cancel('resp_abcdefgh'),
    ).rejects.toMatchObject({ status: 401 });
    const unsigned = await fetch(`${spine.url}/responses/resp_abcdefgh`);
    expect(unsigned.status).toBe(401);
  });

  test('a response that nobody keeps cannot be in the background', async () => {
    expect(await refusal(begin('!tokens:5', { store: false }))).toMatchObject({ status: 400, param: 'store' });
    await expect(begin('!tokens:5', { model: 'no/such' })).rejects.toMatchObject({ status: 404 });
  });

  test(`an account has at most ${COUNT_MAX} at the same time`, async () => {
    const { key } = await spine.tenant('busy', '10');
    const busy = clientOf(key);
    const many = await Promise.allSettled(
      Array.from({ length: COUNT_MAX + 4 }, () => begin('!head-delay:forever', {}, busy)),
    );
    const begun = many.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
    expect(begun).toHaveLength(COUNT_MAX);
    expect(await refusal(begin('!tokens:5', {}, busy))).toMatchObject({
      status: 429,
      message: expect.stringContaining(`${COUNT_MAX} responses under way`),
    });
    await busy.responses.cancel(begun[0]!);
    await until(
      () =>
        begin('!tokens:5', {}, busy).then(
          () => true,
          () => false,
        ),
      'a place is free',
    );
    for (const id of begun.slice(1)) await busy.responses.cancel(id);
  });

  test('an account that is frozen begins none, and those that are under way end', async () => {
    const { account, key } = await spine.tenant('frozen', '1');
    const by = clientOf(key);
    const { id } = await begin('!tokens:40 !token-ms:10', {}, by);
    const admin = (state: string) =>
      fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/${state}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ reason: 'a test' }),
      });
    expect((await admin('freeze')).status).toBe(200);
    expect(await refusal(begin('!tokens:3', {}, by))).toMatchObject({ status: 403 });
    expect(await ended(id, by)).toMatchObject({ status: 'completed' });
    expect(await spine.generation(callOf(id), key)).toMatchObject({ state: 'settled' });
  });

  test('its restricted key and the whole account cancel it, and no other key', async () => {
    const fields = { allowedServices: [MODEL] };
    const [own, other] = [await spine.tenant('parts', '1', fields), await spine.tenant('parts', '0', fields)];
    const whole = await spine.tenant('parts', '0');
    for (const { key } of [own, whole]) {
      const { id } = await begin('!head-delay:forever', {}, clientOf(own.key));
      for (const ask of [
        clientOf(other.key).responses.cancel(id),
        clientOf(other.key).responses.retrieve(id, { stream: true }),
      ])
        expect(await refusal(ask)).toMatchObject({ status: 404 });
      expect((await clientOf(key).responses.cancel(id)).status).toBe('cancelled');
    }
  });

  test('a repeat with the same idempotency key gets the same response', async () => {
    const options = { idempotencyKey: 'the-same' };
    const body = { model: MODEL, input: '!tokens:5', background: true as const };
    const first = await client.responses.create(body, { headers: { 'idempotency-key': 'the-same' }, ...options });
    const again = await client.responses.create(body, { headers: { 'idempotency-key': 'the-same' }, ...options });
    expect(again.id).toBe(first.id);
    await ended(first.id);
    expect(spine.provider.log).toHaveLength(1);
  });
});

describe('what is stored of it', () => {
  let late = 0;
  let small: Spine;
  let by: OpenAI;
  beforeAll(async () => {
    small = await startSpine({
      now: () => Date.now() + late,
      elapsed: () => performance.now(),
      toml:
        `${UNHURRIED}[responses]\naccount_bytes_max = 65536\n` +
        modelBlock({ name: CALLER, provider: 'Acme', url: caller.url, maxOutputTokens: 90_000 }),
    });
    by = new OpenAI({ baseURL: small.url, apiKey: small.key, maxRetries: 0 });
  });
  afterAll(async () => {
    try {
      expect(await small.faults()).toEqual([]);
    } finally {
      await small.stop();
    }
  });
  const kept = (table: string) =>
    small.app.database.query({ name: `test/${table}`, text: `SELECT * FROM ${table}` }, []);
  const create = (more: object = {}) => by.responses.create({ model: CALLER, input: 'Hi', ...more }) as Promise<Shown>;

  test('is sealed, also its events', async () => {
    caller.answer = () => ({ chunks: words('Good', ' morning', ' to', ' you') });
    const body = { model: CALLER, input: 'a secret of mine', background: true as const, stream: true as const };
    expect(textOf(await all(await by.responses.create(body)))).toBe('Good morning to you');
    const [events, responses] = [await kept('kept_events'), await kept('kept_responses')];
    expect(events.length).toBeGreaterThan(0);
    const text = JSON.stringify([events, responses], (_key, value: unknown) =>
      typeof value === 'bigint' ? Number(value) : value,
    );
    for (const one of ['secret', 'morning', Buffer.from('morning').toString('base64').slice(0, 8)])
      expect(text).not.toContain(one);
    const [row] = responses;
    const sizes = events.reduce((sum, { events: sealed }) => sum + (sealed as string).length, 0);
    expect(Number(row!['bytes'])).toBeGreaterThan(
      sizes + (row!['input'] as string).length + (row!['response'] as string).length,
    );
  });

  test('is kept for ten minutes, although newer ones of its account need the room', async () => {
    caller.answer = ({ stream: isStreamed }) =>
      isStreamed ? { chunks: words('Good morning') } : { body: completion({ content: 'Good morning' }) };
    const { id } = await create({ background: true });
    await ended(id, by);
    const fill = async () => {
      for (let at = 0; at < 12; at += 1) await create({ input: 'x'.repeat(12_000) });
    };
    await fill();
    expect((await retrieve(id, by)).status).toBe('completed');
    late += 601_000;
    await fill();
    expect(await refusal(retrieve(id, by))).toMatchObject({ status: 404 });
  });

  test('is a failure if it is larger than what its account may keep, and says what it cost', async () => {
    const text = Array.from({ length: 9_000 }, (_, at) => `${at * 7919} `).join('');
    caller.answer = () => ({ chunks: words(text) });
    const { id } = await create({ background: true, max_output_tokens: 80_000 });
    const shown = await ended(id, by);
    expect(shown).toMatchObject({
      status: 'failed',
      output: [],
      error: { code: 'server_error', message: expect.stringContaining('responses.account_bytes_max') },
    });
    expect(shown.usage!.cost).toBeGreaterThan(0);
    const large = create({ background: true, input: 'x'.repeat(70_000) });
    expect(await refusal(large)).toMatchObject({ status: 413, param: 'input' });
  });
});
