import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, startSpine, type Spine } from '../support/spine.ts';

// What a small request refers to counts as its body does. The memory for bodies is small here: 4 MiB, of which an
// account and a network may use 1 MiB each. Clients come from the networks that X-Forwarded-For names.

const MIB = 1024 * 1024;
const MODEL = 'test/model';
/** A text that is kept. Sealed, it has a third more bytes, and JSON counts four times. */
const TEXT = '!tokens:1 '.padEnd(150_000, 'x');

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({
    toml:
      `[server]\ntrusted_proxies = ["127.0.0.1"]\n` +
      `[limits]\nrequests_per_minute = 1000000\nburst = 1000000\nbodies_bytes_max = ${4 * MIB}\nmedia_body_bytes_max = ${MIB}\nchat_body_bytes_max = 262144\nbody_bytes_max = 131072\n` +
      modelBlock({ name: MODEL, provider: 'Quick', url: '{provider}', contextLength: 1_000_000 }),
  });
});
afterAll(() => spine.stop());
let finish = () => {};
afterEach(async () => {
  finish();
  spine.provider.hold(null);
  await held(0);
  expect(await spine.faults()).toEqual([]);
});

const heldBytes = () => spine.app.server.requestBodies.heldBytes();
/** Resolves when this many bytes are counted. */
async function held(bytes: number): Promise<void> {
  await expect.poll(heldBytes, { timeout: 30_000, interval: 20 }).toBe(bytes);
}

interface From {
  readonly key?: string;
  readonly from?: string;
  readonly path?: string;
  readonly more?: Record<string, string>;
  readonly signal?: AbortSignal;
}
const send = (body: object, { key = spine.key, from = '10.0.0.1', path = '/responses', more, signal }: From = {}) =>
  spine.post(
    path,
    { model: MODEL, ...body },
    { authorization: `Bearer ${key}`, 'x-forwarded-for': from, ...more },
    signal,
  );
const get = (path: string, from: string) => spine.get(path, { 'x-forwarded-for': from });
interface Answer {
  readonly id: string;
  readonly error: { readonly message: string };
  readonly output: readonly { readonly id: string }[];
}
const read = async (response: Response) => (await response.json()) as Answer;
const messageOf = async (response: Response) => (await read(response)).error.message;

/** Keeps a response with a long input. */
async function keep(key = spine.key): Promise<string> {
  const kept = await read(await send({ input: TEXT, max_output_tokens: 16 }, { key, from: '10.0.9.9' }));
  await held(0);
  return kept.id;
}

/** Begins a request that refers to a kept response, and waits until its provider has it. */
async function running(previous: string, more: From = {}) {
  const released = Promise.withResolvers<void>();
  finish = released.resolve;
  spine.provider.hold(released.promise);
  const before = spine.provider.log.length;
  const answer = send({ input: 'more !tokens:1', previous_response_id: previous }, more).catch(() => null);
  await expect.poll(() => spine.provider.log.length, { timeout: 30_000 }).toBe(before + 1);
  return answer;
}

describe('the conversation that a small request continues', () => {
  test('counts until its call has ended, also if its client leaves before', async () => {
    const id = await keep();
    const leaving = new AbortController();
    const answer = running(id, { signal: leaving.signal });
    await expect.poll(heldBytes).toBeGreaterThan(4 * TEXT.length);
    await expect.poll(() => spine.provider.log.length).toBeGreaterThan(1);
    leaving.abort();
    await answer;
    expect(heldBytes()).toBeGreaterThan(4 * TEXT.length);
  });

  test.each(['/responses', '/responses/input_tokens'])(
    'is refused at %s if the share of its account is used up, and others are served',
    async (path) => {
      const id = await keep();
      const other = await spine.tenant(`other-${path.length}`, '1');
      const theirs = await keep(other.key);
      const answer = running(id);
      await expect.poll(heldBytes).toBeGreaterThan(4 * TEXT.length);
      const refused = await send({ input: 'x', previous_response_id: id }, { path, from: '10.0.0.2' });
      expect([refused.status, refused.headers.get('retry-after'), await messageOf(refused)]).toEqual([
        429,
        '2',
        expect.stringContaining('The large requests of this account'),
      ]);
      const near = await send({ input: 'x', previous_response_id: theirs }, { path, key: other.key });
      expect([near.status, await messageOf(near)]).toEqual([429, expect.stringContaining('of this network')]);
      finish();
      spine.provider.hold(null);
      expect((await answer)?.status).toBe(200);
      const served = await send({ input: 'x !tokens:1', previous_response_id: theirs }, { path, key: other.key });
      expect(served.status).toBe(200);
    },
  );

  test('is refused with 503 if all memory is used', async () => {
    const accounts: { readonly key: string; readonly id: string }[] = [];
    for (let n = 1; n <= 7; n++) {
      const { key } = await spine.tenant(`full-${n}`, '1');
      accounts.push({ key, id: await keep(key) });
    }
    await held(0);
    const released = Promise.withResolvers<void>();
    finish = released.resolve;
    spine.provider.hold(released.promise);
    const ask = ({ key, id }: (typeof accounts)[number], n: number) =>
      send({ input: 'x !tokens:1', previous_response_id: id }, { key, from: `10.0.1.${n}` });
    const last = accounts.pop()!;
    const answers = [];
    for (const [n, account] of accounts.entries()) {
      const before = heldBytes();
      answers.push(ask(account, n));
      await expect.poll(() => heldBytes() - before).toBeGreaterThan(4 * TEXT.length);
    }
    const refused = await ask(last, 7);
    expect([refused.status, await messageOf(refused)]).toEqual([503, expect.stringContaining('The memory of this')]);
    finish();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(6).fill(200));
  });
});

test('what is shown of a kept response counts while it is read', async () => {
  const id = await keep();
  const answer = running(id);
  await expect.poll(heldBytes).toBeGreaterThan(4 * TEXT.length);
  for (const path of [`/responses/${id}`, `/responses/${id}/input_items`]) {
    const refused = await get(path, '10.0.0.2');
    expect([refused.status, await messageOf(refused)]).toEqual([429, expect.stringContaining('of this account')]);
  }
  finish();
  await answer;
  await held(0);
  expect((await get(`/responses/${id}`, '10.0.0.2')).status).toBe(200);
  expect(await (await get(`/responses/${id}/input_items`, '10.0.0.2')).text()).toContain(TEXT);
});

test('the events of a response in the background count while they are sent', async () => {
  const instructions = 'x'.repeat(40_000);
  const asked = { input: 'hi !tokens:1', instructions, background: true, stream: true, max_output_tokens: 16 };
  const first = await (await send(asked)).text();
  const made = /"id":"(resp_\w+)"/.exec(first)![1]!;
  await held(0);
  const answer = running(await keep());
  await expect.poll(heldBytes).toBeGreaterThan(4 * TEXT.length);
  const refused = await (await get(`/responses/${made}?stream=true`, '10.0.0.2')).text();
  expect(refused).toContain('event: error');
  expect(refused).toContain('of this account');
  expect(refused).not.toContain('response.completed');
  finish();
  await answer;
  await held(0);
  expect(await (await get(`/responses/${made}?stream=true`, '10.0.0.2')).text()).toBe(first);
  await held(0);
});

test('a request that names one item very often is refused before it is written out', async () => {
  const input = [{ type: 'message', id: 'msg_of_mine', role: 'user', content: TEXT }];
  expect((await send({ input, max_output_tokens: 16 })).status).toBe(200);
  const references = Array.from({ length: 2_000 }, () => ({ type: 'item_reference', id: 'msg_of_mine' }));
  const refused = await send({ input: references });
  expect([refused.status, await messageOf(refused)]).toEqual([400, expect.stringContaining('more than 262144 bytes')]);
});

test.each([
  ['refers to nothing', 'resp_AAAAAAAAAAAAAAAAAA', 400],
  ['costs more than it may', null, 422],
])('the memory is free again after a request that %s', async (_what, previous, status) => {
  const body = { input: 'x', previous_response_id: previous ?? (await keep()), max_output_tokens: 16 };
  const answer = await send(body, { more: { 'x-max-cost': '0.000001' } });
  expect(answer.status).toBe(status);
  await held(0);
});
