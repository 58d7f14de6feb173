import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import {
  call,
  chunk,
  completion,
  startTranscripts,
  usage,
  words,
  type TranscriptUpstream,
} from '../translated/support/transcript-upstream.ts';

// Responses that are kept, with OpenAI's SDK as it is on npm, at a provider of chat models.

const MODEL = 'acme/thinker';
const OTHER = 'acme/other';
const HOUR_MS = 3_600_000;
let upstream: TranscriptUpstream;
let spine: Spine;
let client: OpenAI;
let late = 0;
beforeAll(async () => {
  upstream = await startTranscripts();
  spine = await startSpine({
    now: () => Date.now() + late,
    elapsed: () => performance.now(),
    toml:
      UNHURRIED +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url }) +
      modelBlock({ name: OTHER, provider: 'Acme', url: upstream.url }),
  });
  client = clientOf(spine.key);
});
const answers = (content: string) => {
  upstream.answer = ({ stream }) => (stream ? { chunks: words(content) } : { body: completion({ content }) });
};
beforeEach(() => answers('Good morning'));
afterAll(async () => {
  try {
    expect(await spine.faults()).toEqual([]);
  } finally {
    await spine.stop();
    await upstream.stop();
  }
});

const clientOf = (apiKey: string) => new OpenAI({ baseURL: spine.url, apiKey, maxRetries: 0 });
type Kept = OpenAI.Responses.Response & { readonly store?: boolean };
const asked = () => upstream.asked.at(-1)!;
const said = () => (asked()['messages'] as { role: string; content: string }[]).map(({ content }) => content);
const create = (more: object = {}, by = client) =>
  by.responses.create({ model: MODEL, input: 'Hi', ...more }) as Promise<Kept>;
const next = (previous: string, more: object = {}, by = client) =>
  create({ input: 'and then?', previous_response_id: previous, ...more }, by);
/** The error of a request that is refused. */
const refusal = async (request: Promise<unknown>) => {
  const error: unknown = await request.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof OpenAI.APIError)) throw new Error('it was not refused', { cause: error });
  return { status: error.status as number, message: (error.error as { message: string }).message, param: error.param };
};

describe('a response is kept', () => {
  test.each([
    ['in one piece', async () => create({ metadata: { a: 'b' }, instructions: 'Be kind.' })],
    ['in a stream', async () => (await client.responses.stream({ model: MODEL, input: 'Hi' }).finalResponse()) as Kept],
  ])('%s, and shown as it was answered', async (_how, ask) => {
    const { output_text: _text, ...answered } = await ask();
    expect(answered.store).toBe(true);
    const { data, response } = await client.responses.retrieve(answered.id).withResponse();
    const { output_text: text, ...shown } = data;
    expect(text).toBe('Good morning');
    const { output_parsed: _parsed, output: _output, ...told } = answered as typeof answered & { output_parsed?: null };
    expect(shown).toMatchObject(told);
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({ state: 'settled' });
  });

  test('with all events of its stream the same, but not if the request says so', async () => {
    for (const store of [true, false]) {
      const stores: unknown[] = [];
      for await (const event of await client.responses.create({ model: MODEL, input: 'Hi', stream: true, store }))
        if ('response' in event) stores.push((event.response as Kept).store);
      expect(stores).toEqual([store, store, store]);
    }
    const { id, store } = await create({ store: false });
    expect(store).toBe(false);
    expect(await refusal(client.responses.retrieve(id))).toEqual({
      status: 404,
      message: `Response with id '${id}' not found.`,
      param: 'response_id',
    });
  });

  test('until it is deleted', async () => {
    const { id } = await create();
    await client.responses.delete(id);
    expect(await refusal(client.responses.retrieve(id))).toMatchObject({ status: 404 });
    expect(await refusal(client.responses.delete(id))).toMatchObject({ status: 404 });
    expect(await refusal(next(id))).toEqual({
      status: 400,
      message: `Previous response with id '${id}' not found.`,
      param: 'previous_response_id',
    });
    const strict = new OpenAI({ baseURL: `${spine.origin}/v1`, apiKey: spine.key, maxRetries: 0 });
    await expect(next(id, {}, strict)).rejects.toMatchObject({ code: 'previous_response_not_found' });
  });

  test('for a day after its last use', async () => {
    const first = await create();
    late += 20 * HOUR_MS;
    const second = await next(first.id);
    late += 20 * HOUR_MS;
    await next(second.id);
    expect((await client.responses.retrieve(first.id)).id).toBe(first.id);
    late += 25 * HOUR_MS;
    expect(await refusal(client.responses.retrieve(first.id))).toMatchObject({ status: 404 });
    expect(await refusal(next(second.id))).toMatchObject({ status: 400 });
  });
});

describe('previous_response_id', () => {
  test('continues the whole conversation, and is paid as input', async () => {
    const first = await create({ instructions: 'Be brief.' });
    answers('Noon');
    const second = await client.responses
      .stream({ model: MODEL, input: 'And then?', previous_response_id: first.id })
      .finalResponse();
    expect(second.previous_response_id).toBe(first.id);
    const third = await next(second.id, { input: [{ role: 'user', content: 'Last one' }] });
    expect(said()).toEqual(['Hi', 'Good morning', 'And then?', 'Noon', 'Last one']);
    const { data } = await client.responses.inputItems.list(third.id, { order: 'asc' });
    expect(data).toMatchObject([
      { type: 'message', role: 'user', content: 'Hi' },
      { type: 'message', role: 'assistant', id: first.output[0]!.id },
      { content: 'And then?' },
      { id: second.output[0]!.id },
      { content: 'Last one' },
    ]);
  });

  test('locks what the history may cost', async () => {
    const poor = await spine.tenant('poor', '0.012');
    const words1k = 'word '.repeat(1_000);
    const first = await create({ input: words1k, max_output_tokens: 16 }, clientOf(poor.key));
    // Each time the prompt has 5,000 bytes, which are at most 5,000 micro-USD.
    const second = await next(first.id, { input: words1k, max_output_tokens: 16 }, clientOf(poor.key));
    expect(second.status).toBe('completed');
    const refused = await refusal(next(second.id, { input: words1k, max_output_tokens: 16 }, clientOf(poor.key)));
    expect(refused).toMatchObject({ status: 402 });
  });

  test('counts the history among the input tokens', async () => {
    const { id } = await create({ input: 'word '.repeat(1_000) });
    const count = async (more: object) =>
      (await client.responses.inputTokens.count({ model: MODEL, input: 'Hi', ...more })).input_tokens;
    expect((await count({ previous_response_id: id })) - (await count({}))).toBeGreaterThan(1_000);
    expect(await refusal(count({ previous_response_id: `${id}0` }))).toMatchObject({ status: 400 });
  });

  test('of an earlier response that is gone is refused with the name of that one', async () => {
    const first = await create();
    const second = await next(first.id);
    await client.responses.delete(first.id);
    expect(await refusal(next(second.id))).toMatchObject({ status: 400, message: expect.stringContaining(first.id) });
  });

  test('has tool calls with the members that their provider wants back', async () => {
    const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false }];
    upstream.answer = () => ({
      chunks: [
        chunk({ reasoning_content: 'Hm' }),
        call(0, { id: 'a', name: 'weather', args: '{}' }),
        chunk({}, 'tool_calls'),
        usage(),
      ],
    });
    const first = await client.responses
      .stream({ model: MODEL, input: 'Weather?', tools: tools as OpenAI.Responses.Tool[] })
      .finalResponse();
    const called = first.output.find((item) => item.type === 'function_call')!;
    answers('It is sunny');
    await next(first.id, {
      tools,
      input: [{ type: 'function_call_output', call_id: called.call_id, output: 'sunny' }],
    });
    expect(asked()['messages']).toMatchObject([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', reasoning_content: 'Hm', tool_calls: [{ id: 'a' }] },
      { role: 'tool', tool_call_id: 'a', content: 'sunny' },
    ]);
  });
});

describe('item_reference', () => {
  test('names items of a response and of its request', async () => {
    const first = await create();
    const { data: input } = await client.responses.inputItems.list(first.id);
    const ids = [input[0]!.id, first.output[0]!.id!];
    const references = ids.map((id) => ({ type: 'item_reference' as const, id }));
    const second = await create({ input: [...references, { role: 'user', content: 'again' }] });
    expect(said()).toEqual(['Hi', 'Good morning', 'again']);
    // A reference in a kept request is followed, too.
    await next(second.id, { input: 'more' });
    expect(said()).toEqual(['Hi', 'Good morning', 'again', 'Good morning', 'more']);
    const { data } = await client.responses.inputItems.list(second.id, { order: 'asc' });
    expect(data.map(({ id }) => id)).toEqual([...ids, expect.stringMatching(/^msg_/)]);
  });

  test('names items by the ids that the client gave them', async () => {
    const own = { type: 'message', id: 'msg_of_mine', role: 'user', content: 'mine' };
    await create({ input: [own] });
    await create({
      input: [
        { type: 'item_reference', id: own.id },
        { role: 'user', content: 'again' },
      ],
    });
    expect(said()).toEqual(['mine\n\nagain']);
  });

  test.each(['msg_1', 'msg_AAAAAAAAAAAAAAAAAA_0', 'nul\0', '\ud800', ''])('of nothing is refused: %j', async (id) => {
    const before = upstream.asked.length;
    const { status, message } = await refusal(create({ input: [{ type: 'item_reference', id }] }));
    expect({ status, message }).toEqual(
      id === ''
        ? { status: 400, message: expect.stringContaining('must have the id') }
        : { status: 404, message: expect.stringMatching(/not found\. Items are kept with their response/) },
    );
    expect(upstream.asked.length).toBe(before);
  });
});

test('the input is listed in pages', async () => {
  const input = ['a', 'b', 'c', 'd', 'e'].map((content) => ({ role: 'user' as const, content }));
  const { id } = await create({ input });
  const contents: unknown[] = [];
  for await (const item of client.responses.inputItems.list(id, { limit: 2 }))
    contents.push((item as { content: unknown }).content);
  expect(contents).toEqual(['e', 'd', 'c', 'b', 'a']);
  const page = await client.responses.inputItems.list(id, { limit: 2, order: 'asc' });
  expect(page).toMatchObject({ has_more: true, data: [{ content: 'a' }, { content: 'b' }] });
  expect(await refusal(Promise.resolve(client.responses.inputItems.list(id, { after: 'x' })))).toMatchObject({
    status: 400,
  });
});

describe('is seen by', () => {
  test('its restricted key and the whole account, as long as the key may use the model', async () => {
    const fields = { allowedServices: [MODEL] };
    const [one, other] = [await spine.tenant('sharer', '1', fields), await spine.tenant('sharer', '0', fields)];
    const whole = await spine.tenant('sharer', '0');
    const stranger = await spine.tenant('stranger', '1');
    const { id, output } = await create({}, clientOf(one.key));
    for (const { key } of [one, whole]) {
      expect((await clientOf(key).responses.retrieve(id)).id).toBe(id);
      expect((await next(id, {}, clientOf(key))).previous_response_id).toBe(id);
    }
    const reference = [{ type: 'item_reference', id: output[0]!.id }];
    for (const { key } of [other, stranger]) {
      const by = clientOf(key);
      expect(await refusal(by.responses.retrieve(id))).toMatchObject({ status: 404 });
      expect(await refusal(by.responses.delete(id))).toMatchObject({ status: 404 });
      expect(await refusal(Promise.resolve(by.responses.inputItems.list(id)))).toMatchObject({ status: 404 });
      expect(await refusal(next(id, {}, by))).toMatchObject({ status: 400 });
      expect(await refusal(create({ input: reference }, by))).toMatchObject({ status: 404 });
    }
    const elsewhere = await create({ model: OTHER }, clientOf(whole.key));
    expect(await refusal(clientOf(one.key).responses.retrieve(elsewhere.id))).toMatchObject({ status: 404 });
  });
});

test('a key that may no longer use a model does not see its responses any more', async () => {
  const { key, hash } = await spine.tenant('narrowed', '1', { allowedServices: [MODEL, OTHER] });
  const by = clientOf(key);
  const [inModel, inOther] = [await create({}, by), await create({ model: OTHER }, by)];
  const narrowed = await fetch(`${spine.url}/keys/${hash}`, {
    method: 'PATCH',
    headers: {
      authorization: `Bearer ${(await spine.tenant('narrowed', '0')).key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ allowed_services: [MODEL] }),
  });
  expect(narrowed.status, await narrowed.text()).toBe(200);
  expect((await by.responses.retrieve(inModel.id)).id).toBe(inModel.id);
  const [item] = inOther.output;
  for (const ask of [
    () => by.responses.retrieve(inOther.id),
    () => by.responses.delete(inOther.id),
    () => Promise.resolve(by.responses.inputItems.list(inOther.id)),
    () => next(inOther.id, {}, by),
    () => create({ input: [{ type: 'item_reference', id: item!.id }] }, by),
  ])
    expect(await refusal(ask())).toMatchObject({ status: 403, message: expect.stringContaining(OTHER) });
});

test('the content is not readable in the database', async () => {
  const { id } = await create({ input: 'a secret of mine' });
  const [row] = await spine.app.database.query(
    { name: 'test/kept', text: 'SELECT * FROM kept_responses WHERE id = $1' },
    [id],
  );
  expect(row).toMatchObject({ id, account: spine.account, service: MODEL });
  expect(
    JSON.stringify(row, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  ).not.toMatch(/secret of mine|Good morning/);
});

describe('what an account keeps', () => {
  const share = 'account_bytes_max = 65536\naccount_count_max = 20\n';
  test.each([
    ['bytes', 'x'.repeat(12_000), 3],
    ['count', 'x', 17],
  ])('is bounded in %s, and what was not used for longest goes first', async (_what, input, least) => {
    const small = await startSpine({
      toml: `${UNHURRIED}[responses]\n${share}${modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url })}`,
    });
    try {
      const own = new OpenAI({ baseURL: small.url, apiKey: small.key, maxRetries: 0 });
      const ids: string[] = [];
      for (let i = 0; i < 40; i += 1) ids.push((await create({ input }, own)).id);
      const kept = await Promise.all(ids.map((id) => own.responses.retrieve(id).then(Boolean, () => false)));
      const firstKept = kept.indexOf(true);
      expect(kept.slice(firstKept)).not.toContain(false);
      const count = kept.length - firstKept;
      expect(count).toBeGreaterThanOrEqual(least);
      // The bound is checked after each eighth of it.
      expect(count).toBeLessThanOrEqual(input === 'x' ? 23 : 5);
      // One that is too large for the account is answered, and says that it is not kept.
      const large = await create({ input: 'x'.repeat(70_000) }, own);
      expect(large).toMatchObject({ store: false, status: 'completed' });
      expect(
        (await own.responses.stream({ model: MODEL, input: 'x'.repeat(70_000) }).finalResponse()) as Kept,
      ).toMatchObject({ store: false });
      expect(await small.faults()).toEqual([]);
    } finally {
      await small.stop();
    }
  });
});

test('a key that keeps many responses deletes none of another key of its account', async () => {
  const small = await startSpine({
    toml: `${UNHURRIED}[responses]\naccount_count_max = 20\n${modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url })}`,
  });
  try {
    const at = (key: string) => new OpenAI({ baseURL: small.url, apiKey: key, maxRetries: 0 });
    const modest = await small.tenant('modest', '1', { limit: 1_000_000n });
    const fields = { account: modest.account, label: 'greedy', kind: 'live', limit: 1_000_000n } as const;
    const greedy = at((await small.app.keys.create(fields))!.text);
    const { id } = await create({ input: 'x' }, at(modest.key));
    for (let i = 0; i < 60; i += 1) await create({ input: 'x' }, greedy);
    expect(await at(modest.key).responses.retrieve(id)).toMatchObject({ id });
    expect(await small.faults()).toEqual([]);
  } finally {
    await small.stop();
  }
});

test('all accounts together keep at most what the operator allows, and each is answered', async () => {
  const BYTES_MAX = 200_000;
  const small = await startSpine({
    toml: `${UNHURRIED}[responses]\nbytes_max = ${BYTES_MAX}\naccount_bytes_max = 65536\n${modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url })}`,
  });
  try {
    const bySize = async () => {
      const rows = await small.app.database.query(
        { name: 'test/sizes', text: 'SELECT account, SUM(bytes) AS bytes FROM kept_responses GROUP BY account' },
        [],
      );
      return new Map(rows.map(({ account, bytes }) => [account as string, Number(bytes)]));
    };
    const accounts: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const { account, key } = await small.tenant(name, '1');
      accounts.push(account);
      const own = new OpenAI({ baseURL: small.url, apiKey: key, maxRetries: 0 });
      for (let i = 0; i < 8; i += 1)
        expect(await create({ input: 'x'.repeat(6_000) }, own)).toMatchObject({ status: 'completed', store: true });
      const sizes = await bySize();
      expect([...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(BYTES_MAX);
    }
    // Each has about an equal share, whoever came first.
    const sizes = await bySize();
    for (const account of accounts) expect(sizes.get(account)).toBeGreaterThan(BYTES_MAX / 6 / 2);
    expect(await small.faults()).toEqual([]);
  } finally {
    await small.stop();
  }
});

test('many accounts that keep little keep no more than the operator allows, and each its last response', async () => {
  const BYTES_MAX = 65_536;
  const small = await startSpine({
    toml: `${UNHURRIED}[responses]\nbytes_max = ${BYTES_MAX}\naccount_bytes_max = 65536\n${modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url })}`,
  });
  try {
    const sum = { name: 'test/sum', text: 'SELECT SUM(bytes) AS bytes FROM kept_responses' };
    for (let account = 0; account < 14; account += 1) {
      const { key } = await small.tenant(`little-${account}`, '1');
      const own = new OpenAI({ baseURL: small.url, apiKey: key, maxRetries: 0 });
      for (let i = 0; i < 2; i += 1) {
        const { id, store } = await create({ input: 'x'.repeat(1_000) }, own);
        expect(store).toBe(true);
        expect((await own.responses.retrieve(id)).id).toBe(id);
        expect(Number((await small.app.database.query(sum, []))[0]!['bytes'])).toBeLessThanOrEqual(BYTES_MAX);
      }
    }
    // One account cannot push out the others, and is told what is not kept.
    const { key } = await small.tenant('much', '1');
    const own = new OpenAI({ baseURL: small.url, apiKey: key, maxRetries: 0 });
    const before = await create({ input: 'x' }, own);
    expect(await create({ input: 'x'.repeat(30_000) }, own)).toMatchObject({ status: 'completed', store: false });
    expect((await own.responses.retrieve(before.id)).id).toBe(before.id);
    expect(await small.faults()).toEqual([]);
  } finally {
    await small.stop();
  }
});

describe('a gateway that keeps nothing', () => {
  let keepsNone: Spine;
  let own: OpenAI;
  beforeAll(async () => {
    keepsNone = await startSpine({
      toml: `${UNHURRIED}[responses]\nkeep_ms = 0\n${modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url })}`,
    });
    own = new OpenAI({ baseURL: keepsNone.url, apiKey: keepsNone.key, maxRetries: 0 });
  });
  afterAll(async () => {
    try {
      expect(await keepsNone.faults()).toEqual([]);
    } finally {
      await keepsNone.stop();
    }
  });

  test('says so in the answer', async () => {
    const { id, store } = await create({ store: true }, own);
    expect(store).toBe(false);
    expect(await refusal(own.responses.retrieve(id))).toMatchObject({ status: 404 });
  });

  test.each([
    [{ previous_response_id: 'resp_AAAAAAAAAAAAAAAAAA' }, 'previous_response_id'],
    [
      {
        input: [
          { role: 'user', content: 'x' },
          { type: 'item_reference', id: 'msg_1' },
        ],
      },
      'input[1]',
    ],
    [{ input: [{ id: 'msg_1' }] }, 'input[0]'],
  ])('refuses what refers to it, and says what to do: %j', async (more, param) => {
    const refused = await refusal(create(more, own));
    expect(refused).toMatchObject({ status: 400, param });
    expect(refused.message).toContain('keeps no responses (responses.keep_ms is 0)');
    expect(refused.message).toContain('store: false');
    if (param !== 'previous_response_id') expect(refused.message).toContain('item_reference');
  });
});
