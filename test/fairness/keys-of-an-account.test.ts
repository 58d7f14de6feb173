import { afterEach, describe, expect, test } from 'vitest';
import { CHAT, chatLine, clientAt, jsonl, upload } from '../openai/batches/support/batch-client.ts';
import { spineOfFile } from '../support/of-file.ts';
import { MODEL, UNHURRIED } from '../support/spine.ts';

// What an account has, its keys share as accounts share what a gateway has: a key that is given to a program, and the
// rest of the account. A pool of four is one for each key, of eight for all.

const spine = spineOfFile(() => ({
  toml: `${UNHURRIED}listens_max = 4\n[responses]\nbackground_count_max = 4\n[batches]\nlive_max = 4\naccount_count_max = 40\n[mcp]\nsessions_max = 8\n`,
}));
let release = () => {};
let leave = new AbortController();
afterEach(() => {
  release();
  leave.abort();
  leave = new AbortController();
  spine.provider.hold(null);
});

/** An account with two limited keys, and one that is not limited. */
async function account(name: string) {
  const { account: owner, key: greedy } = await spine.tenant(name, '10', { limit: 1_000_000n });
  const keyOf = async (label: string, fields: { readonly limit?: bigint } = {}) =>
    (await spine.app.keys.create({ account: owner, label, kind: 'live', ...fields }))!.text;
  return { greedy, modest: await keyOf('modest', { limit: 1_000_000n }), full: await keyOf('full') };
}

type Take = (key: string) => Promise<{ readonly status: number; readonly message: string }>;

/** How many a key gets until it is refused, and the refusal. */
async function allOf(key: string, take: Take): Promise<[number, string]> {
  for (let count = 0; count < 20; count++) {
    const { status, message } = await take(key);
    if (status === 429) return [count, message];
    expect(status).toBeLessThan(300);
  }
  throw new Error('it is not refused');
}

const post = async (key: string, path: string, body: object) => {
  const response = await fetch(`${spine.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { readonly error?: { readonly message: string } };
  return { status: response.status, message: error?.message ?? '' };
};

const POOLS: readonly (readonly [string, Take])[] = [
  [
    'responses under way in the background',
    (key) => post(key, '/responses', { model: MODEL, input: 'hello', max_output_tokens: 5, background: true }),
  ],
  [
    'batches under way',
    async (key) => {
      const { id } = await upload(clientAt(`${spine.origin}/v1`, key), jsonl([chatLine('a', 'ping !tokens:5')]));
      return post(key, '/batches', { input_file_id: id, endpoint: CHAT, completion_window: '24h' });
    },
  ],
];

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

const headersOf = (key: string) => ({
  authorization: `Bearer ${key}`,
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
});
const initialize = (key: string) =>
  fetch(`${spine.origin}/mcp`, { method: 'POST', headers: headersOf(key), body: JSON.stringify(INITIALIZE) });
const begin: Take = async (key) => {
  const opened = await initialize(key);
  return { status: opened.status, message: await opened.text() };
};
const listen: Take = async (key) => {
  const opened = await initialize(key);
  await opened.text();
  const headers = headersOf(key);
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id')! };
  const stream = await fetch(`${spine.origin}/mcp`, { headers: { ...headers, ...session }, signal: leave.signal });
  return { status: stream.status, message: stream.status === 200 ? '' : await stream.text() };
};

test('streams that listen are shared by the keys of an account', async () => {
  const { greedy, modest, full } = await account('listens');
  const [most, message] = await allOf(greedy, listen);
  expect([most, message]).toEqual([4, expect.stringContaining('listens on 4 streams')]);
  expect((await allOf(modest, listen))[0]).toBe(2);
  expect((await allOf(full, listen))[0]).toBe(1);
});

test('MCP sessions are shared by the keys of an account', async () => {
  const { greedy, modest, full } = await account('sessions');
  const [most, message] = await allOf(greedy, begin);
  expect([most, message]).toEqual([8, expect.stringContaining('has 8 sessions')]);
  expect((await allOf(modest, begin))[0]).toBe(4);
  expect((await allOf(full, begin))[0]).toBe(2);
});

describe.each(POOLS)('%s', (what, take) => {
  test('are shared by the keys of an account, and one that is alone notices nothing', async () => {
    spine.provider.hold(new Promise<void>((resolve) => (release = resolve)));
    const { greedy, modest, full } = await account(what.replaceAll(' ', '-'));
    const [most, message] = await allOf(greedy, take);
    expect([most, message]).toEqual([4, expect.stringContaining(`This key has its share of the ${what}`)]);
    expect((await allOf(modest, take))[0]).toBe(2);
    const [rest, ofAccount] = await allOf(full, take);
    expect([rest, ofAccount]).toEqual([1, expect.stringContaining(`This account has 4 ${what}`)]);
    const other = await spine.tenant(`alone-with-${what.replaceAll(' ', '-')}`, '10');
    expect((await allOf(other.key, take))[0]).toBe(4);
  });
});
