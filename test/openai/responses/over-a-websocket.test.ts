import { connect } from 'node:net';
import { once } from 'node:events';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { describe, expect, onTestFinished, test } from 'vitest';
import { escrowOf } from '#billing';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';
import { response } from '../native/support/transcripts.ts';
import { event, startWireUpstream } from '../native/support/wire-upstream.ts';
import { openRealtime, type Json, type RawClient } from '../realtime/support/realtime-client.ts';
import { chunk, startTranscripts, usage, words } from '../translated/support/transcript-upstream.ts';

// Responses over a WebSocket: each is the POST of its body, and what a later one continues is in memory if it is not
// kept.

const CHAT = 'acme/chat';
const NATIVE = 'acme/native';
const chat = ofFile(startTranscripts, (one) => one.stop());
const native = ofFile(startWireUpstream, (one) => one.stop());
const block = (url: string) => modelBlock({ name: CHAT, provider: 'Acme', url });
const spine = spineOfFile(() => ({
  toml:
    `${UNHURRIED}realtime_sessions_max = 2\n` +
    block(chat.url) +
    modelBlock({ name: NATIVE, provider: 'Native', url: native.url, params: 'wires = ["responses"]' }),
}));

const open = async ({ origin }: Pick<Spine, 'origin'>, key: string, prefix = '/v1'): Promise<RawClient> => {
  const client = await openRealtime(`${origin.replace('http', 'ws')}${prefix}/responses`, key);
  onTestFinished(async () => {
    client.socket.terminate();
    await client.closed;
  });
  return client;
};
const ask = (input: unknown, more: object = {}) => ({
  type: 'response.create',
  model: CHAT,
  store: false,
  max_output_tokens: 50,
  input,
  ...more,
});
const ended = async (client: RawClient): Promise<Json> => (await client.take('response.completed'))['response'] as Json;
const refused = async (client: RawClient): Promise<Json> => await client.take('error');
const said = (...texts: readonly string[]) => (chat.answer = () => ({ chunks: words(...texts) }));
const balanceOf = async ({ app }: Spine, account: string) => (await app.ledger.balance(escrowOf(account)))!.available;
const textOf = ({ output }: Json) => (output as { content: { text: string }[] }[])[0]!.content[0]!.text;

test('has the events of the stream, and costs what the POST costs', async () => {
  said('Hel', 'lo');
  const { account, key } = await spine.tenant('both', '10');
  const authorization = { authorization: `Bearer ${key}` };
  const posted = await spine.post('/responses', { ...ask('Hi'), stream: true }, authorization);
  const types = [...(await posted.text()).matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
  const one = 10_000_000n - (await balanceOf(spine, account));
  expect(one).toBeGreaterThan(0n);
  for (const prefix of ['/v1', '/api/v1']) {
    const client = await open(spine, key, prefix);
    const before = await balanceOf(spine, account);
    client.send(ask('Hi'));
    const response = await ended(client);
    expect(client.events.map(({ type }) => type)).toEqual(types);
    expect(textOf(response)).toBe('Hello');
    expect(before - (await balanceOf(spine, account))).toBe(one);
    const { generation_id: id } = response['tollgate'] as { readonly generation_id: string };
    expect((response['usage'] as Json)['cost']).toBe(Number(one) / 1e6);
    expect(await spine.generation(id, key)).toMatchObject({ model: CHAT });
    client.socket.close();
    await client.closed;
  }
});

test("OpenAI's SDK", async () => {
  said('Hello');
  const { host, port, hostname } = new URL(spine.origin);
  const sdk = new OpenAI({ apiKey: spine.key, baseURL: `https://${host}/v1` });
  // The SDK opens wss alone, and the gateway of the test has no certificate.
  const socket = new ResponsesWS(sdk, { createConnection: () => connect(Number(port), hostname) });
  onTestFinished(() => socket.close());
  const texts: string[] = [];
  socket.on('response.output_text.delta', ({ delta }) => void texts.push(delta));
  const done = once(socket as never, 'response.completed');
  socket.send({ type: 'response.create', model: CHAT, store: false, input: 'Hi' });
  await done;
  expect(texts.join('')).toBe('Hello');
});

describe('a later response continues an earlier one', () => {
  test('that is not kept, from the memory of the connection', async () => {
    said('One');
    const client = await open(spine, spine.key);
    client.send(ask('First'));
    const first = await ended(client);
    expect(first).toMatchObject({ store: false, previous_response_id: null });
    said('Two');
    client.send(ask([{ role: 'user', content: 'Second' }], { previous_response_id: first['id'] }));
    const second = await ended(client);
    expect(second).toMatchObject({ store: false, previous_response_id: first['id'] });
    client.send(ask('Third', { previous_response_id: second['id'] }));
    await ended(client);
    const turns = ['First', 'One', 'Second', 'Two', 'Third'];
    const contents = (chat.asked.at(-1)!['messages'] as Json[]).map(({ content }) => content);
    expect(contents).toEqual(turns);
    // Another connection does not have it.
    const other = await open(spine, spine.key);
    other.send(ask('Third', { previous_response_id: second['id'] }));
    expect(await refused(other)).toMatchObject({
      status: 400,
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    });
    // A mistake leaves what is remembered.
    client.send(ask('Third', { previous_response_id: 'resp_00000000' }));
    expect(await refused(client)).toMatchObject({ error: { code: 'previous_response_not_found' } });
    client.send(ask('Again', { previous_response_id: first['id'] }));
    expect(await ended(client)).toMatchObject({ status: 'completed' });
  });

  test('that is kept, in any connection, and one of its own that is not kept', async () => {
    said('One');
    const { key } = await spine.tenant('kept', '10');
    const client = await open(spine, key);
    client.send({ ...ask('First'), store: true });
    const first = await ended(client);
    expect(first['store']).toBe(true);
    const other = await open(spine, key);
    other.send(ask('Second', { previous_response_id: first['id'] }));
    const second = await ended(other);
    other.send(ask('Third', { previous_response_id: second['id'], store: true }));
    const third = await ended(other);
    expect(third['previous_response_id']).toBe(second['id']);
    const contents = (chat.asked.at(-1)!['messages'] as Json[]).map(({ content }) => content);
    expect(contents).toEqual(['First', 'One', 'Second', 'One', 'Third']);
    const reply = await spine.post(
      '/responses',
      { model: CHAT, input: 'Fourth', previous_response_id: third['id'], stream: true },
      { authorization: `Bearer ${key}` },
    );
    expect(reply.status).toBe(200);
    await reply.text();
    expect(chat.asked.at(-1)!['messages']).toHaveLength(7);
  });

  test('that was only warmed up: nothing is asked, and nothing is paid', async () => {
    const { account, key } = await spine.tenant('warm', '10');
    const client = await open(spine, key);
    const asked = chat.asked.length;
    client.send(ask([{ role: 'user', content: 'Context' }], { generate: false }));
    const warm = await ended(client);
    expect(warm).toMatchObject({ output: [], usage: { total_tokens: 0 } });
    expect(chat.asked).toHaveLength(asked);
    expect(await balanceOf(spine, account)).toBe(10_000_000n);
    said('One');
    client.send(ask([{ role: 'user', content: 'Go' }], { previous_response_id: warm['id'] }));
    await ended(client);
    const [turn] = chat.asked.at(-1)!['messages'] as Json[];
    expect(JSON.stringify(turn)).toMatch(/Context.*Go/);
  });

  test('of a provider that speaks the API, with its thinking and calls', async () => {
    const thought = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'theirs' };
    const call = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}' };
    native.answer = () => ({
      text: event('response.completed', {
        sequence_number: 0,
        response: JSON.parse(response({ output: [thought, call], store: false })) as object,
      }),
    });
    const client = await open(spine, spine.key);
    client.send(ask('First', { model: NATIVE, extra: 1 }));
    const first = await ended(client);
    const result = { type: 'function_call_output', call_id: 'c1', output: 'done' };
    client.send(ask([result], { model: NATIVE, previous_response_id: first['id'] }));
    expect((await ended(client))['previous_response_id']).toBe(first['id']);
    const { input, previous_response_id: sent, type } = native.reached.at(-1)!.body;
    const { id: _, ...plainCall } = call;
    expect(input).toEqual([{ type: 'message', role: 'user', content: 'First' }, thought, plainCall, result]);
    expect([sent, type]).toEqual([undefined, undefined]);
  });
});

test('names what a provider did not get', async () => {
  said('One');
  const client = await open(spine, spine.key);
  client.send(
    ask([
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      { role: 'user', content: 'Hi' },
    ]),
  );
  expect((await ended(client))['tollgate']).toMatchObject({ dropped: ['web_search_call'] });
});

test('one response at a time: the next message waits', async () => {
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  chat.answer = ({ messages }) => {
    const [{ content }] = messages as [{ content: string }];
    if (content !== 'First') return { chunks: words('Two') };
    return { first: [chunk({ content: 'One' })], until: gate, chunks: [chunk({}, 'stop'), usage()] };
  };
  const client = await open(spine, spine.key);
  client.send(ask('First'));
  client.send(ask('Second'));
  await client.take('response.output_text.delta');
  expect(chat.asked.at(-1)!['messages']).toMatchObject([{ content: 'First' }]);
  goOn();
  expect(textOf(await ended(client))).toBe('One');
  expect(textOf(await ended(client))).toBe('Two');
});

test('errors are events, and the connection stays', async () => {
  const { key } = await spine.tenant('errors', '10');
  const client = await open(spine, key);
  const cases: readonly [object, object][] = [
    [ask('Hi', { model: 'no/such' }), { status: 404, error: { code: 'invalid_model' } }],
    [ask([]), { status: 400, error: { param: 'input' } }],
    [ask('Hi', { background: true }), { status: 400, error: { param: 'background' } }],
    [ask('Hi', { stream_id: 'a' }), { status: 400, error: { param: 'stream_id' } }],
    [{ type: 'response.cancel' }, { status: 400, error: { param: 'type' } }],
    [ask([{ type: 'compaction_trigger' }]), { status: 400 }],
  ];
  for (const [message, expected] of cases) {
    client.send(message as Json);
    const error = await refused(client);
    expect(error).toMatchObject(expected);
    expect(typeof (error['error'] as Json)['code']).toBe('string');
  }
  client.socket.send('{"type":');
  expect(await refused(client)).toMatchObject({ status: 400 });
  client.socket.send(Buffer.from('{}'));
  expect(await refused(client)).toMatchObject({ status: 400 });
  client.send({ type: 'response.processed', response_id: 'resp_1' });
  said('Still here');
  client.send(ask('Hi'));
  expect(textOf(await ended(client))).toBe('Still here');
  const poor = await open(spine, (await spine.tenant('poor', '0')).key);
  poor.send(ask('Hi'));
  expect(await refused(poor)).toMatchObject({ status: 424, error: { code: 'escrow_not_setup' } });
});

test('a client that leaves ends its response, which is settled', async () => {
  const { account, key } = await spine.tenant('leaves', '10');
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => (goOn = resolve));
  chat.answer = () => ({
    first: [chunk({ content: 'One' })],
    until: gate,
    chunks: [chunk({ content: ' Two' }), chunk({}, 'stop'), usage()],
  });
  const client = await open(spine, key);
  client.send(ask('First'));
  await client.take('response.output_text.delta');
  client.socket.terminate();
  await client.closed;
  goOn();
  await spine.quiet();
  expect(await balanceOf(spine, account)).toBeLessThan(10_000_000n);
});

describe('a handshake', () => {
  test('without a valid key is 401', async () => {
    const url = `${spine.origin.replace('http', 'ws')}/v1/responses`;
    await expect(openRealtime(url, null)).rejects.toMatchObject({ status: 401 });
    await expect(openRealtime(url, 'sk-wrong')).rejects.toMatchObject({ status: 401 });
  });

  test('beyond the limit of its account is 426, so that the client sends plain requests', async () => {
    const { key } = await spine.tenant('many', '10');
    const first = await open(spine, key);
    await open(spine, key);
    await expect(open(spine, key)).rejects.toMatchObject({ status: 426 });
    first.socket.close();
    await first.closed;
    const again = () => open(spine, key).catch(() => null);
    await expect.poll(again, { timeout: 50_000 }).not.toBeNull();
  });
});

describe('the connection ends with words that let clients open another one', () => {
  const LIMIT = 'websocket_connection_limit_reached';

  test('when no message comes, and when it has lasted long enough', async () => {
    for (const [option, words_] of [
      ['realtime_idle_ms = 300', 'No message came'],
      ['realtime_session_ms = 1000', 'lasted'],
    ] as const) {
      const here = await startSpine({ toml: `${UNHURRIED}${option}\n${block(chat.url)}` });
      onTestFinished(() => here.stop());
      const client = await open(here, here.key);
      const { error } = (await refused(client)) as { error: Json };
      expect(error).toMatchObject({ code: LIMIT, message: expect.stringContaining(words_) as string });
      expect((await client.closed).code).toBe(1000);
      expect(await here.faults()).toEqual([]);
    }
  });

  test('when the gateway stops: an idle one at once, another one after its response', async () => {
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    chat.answer = () => ({
      first: [chunk({ content: 'One' })],
      until: gate,
      chunks: [chunk({}, 'stop'), usage()],
    });
    const here = await startSpine({ toml: UNHURRIED + block(chat.url) });
    onTestFinished(() => here.stop());
    const [idle, busy] = [await open(here, here.key), await open(here, here.key)];
    busy.send(ask('First'));
    await busy.take('response.output_text.delta');
    const stopped = here.app.close();
    expect(await refused(idle)).toMatchObject({ error: { code: LIMIT } });
    await idle.closed;
    goOn();
    expect(textOf(await ended(busy))).toBe('One');
    expect(await refused(busy)).toMatchObject({ error: { code: LIMIT } });
    await busy.closed;
    await stopped;
  });
});
