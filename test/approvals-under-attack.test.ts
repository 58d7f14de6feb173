import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { openBrowser } from './gateway/auth/sessions/browser.ts';
import { NATIVE_PEER, PEER } from './peers/routes.ts';
import { SMALLEST_PNG, startPeerProvider, type PeerProvider } from './peers/peer-provider.ts';
import { peerServices } from './peers/services.ts';
import { startSpine, UNHURRIED, type Spine } from './support/spine.ts';

// Attacks on calls that a person accepts: by the program that asks, by other accounts, and by other sites.

let provider: PeerProvider;
let spine: Spine;
beforeAll(async () => {
  provider = await startPeerProvider();
  spine = await startSpine({ toml: UNHURRIED + peerServices(provider) });
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
});

interface Sent {
  readonly path: string;
  readonly type?: string;
  readonly body: string | Buffer;
}
interface Shown {
  readonly id: string;
  readonly state: string;
  readonly preview: string;
}

let tenants = 0;
let sent = 0;
async function world() {
  const { account, key } = await spine.tenant(`attacked-${(tenants += 1)}`, '1', { askAbove: 100n });
  const full = (await spine.app.keys.create({ account, label: 'full', kind: 'live' }))!.text;
  const send = async ({ path, type = 'application/json', body }: Sent, by = key) => {
    const headers = { authorization: `Bearer ${by}`, 'content-type': type };
    const once = typeof body === 'string' ? body.replace('"NEW"', `"m-${(sent += 1)}"`) : new Uint8Array(body);
    const response = await fetch(spine.origin + path, { method: 'POST', headers, body: once });
    const text = await response.text();
    return { status: response.status, text, id: /apr_[0-9a-f]{32}/.exec(text)?.[0] ?? null };
  };
  const decide = (id: string, decision: string, by = full, headers: object = {}) =>
    fetch(`${spine.url}/approvals/${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ decision }),
    });
  const list = async () => {
    const response = await fetch(`${spine.url}/approvals`, { headers: { authorization: `Bearer ${full}` } });
    return ((await response.json()) as { readonly data: readonly Shown[] }).data;
  };
  const money = async () => (await spine.app.ledger.balance(escrowOf(account)))!.available;
  return { account, key, full, send, decide, list, money };
}

const chat = (text: string, type?: string): Sent => ({
  path: '/api/v1/chat/completions',
  body: JSON.stringify({ model: PEER, max_tokens: 5_000, messages: [{ role: 'user', content: `complete ${text}` }] }),
  ...(type === undefined ? {} : { type }),
});
const edit = (prompt: string, boundary: string): Sent => {
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const image = `--${boundary}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n`;
  const end = `\r\n--${boundary}--\r\n`;
  return {
    path: '/api/v1/images/edits',
    type: `multipart/form-data; boundary="${boundary}"`,
    body: Buffer.concat([
      Buffer.from(field('model', PEER) + field('n', '5') + field('prompt', prompt) + image),
      Buffer.from(SMALLEST_PNG, 'base64'),
      Buffer.from(end),
    ]),
  };
};
const message = (said: object | string, params = '') =>
  `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","role":"user","messageId":"NEW","parts":[{"kind":"text","text":"complete"},{"kind":"data","data":${typeof said === 'string' ? said : JSON.stringify(said)}}]}${params}}}`;
const agent = (said: object | string, params = ''): Sent => ({ path: `/a2a/${PEER}`, body: message(said, params) });
const tool = (args: string, name = 'do'): Sent => ({
  path: `/mcp/${PEER}`,
  body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
});

const PLAIN = 'application/json';
/** What a person accepts, and what the program sends then instead. */
const CHANGED: Readonly<Record<string, readonly [Sent, Sent]>> = {
  'other words': [chat('one'), chat('two')],
  'a boundary in the type of JSON, which is a word of the request': [
    chat('pay alice', `${PLAIN}; boundary=alice`),
    chat('pay mallory', `${PLAIN}; boundary=mallory`),
  ],
  'a boundary of a form, which is a word of the prompt': [edit('complete a cat', 'cat'), edit('complete a dog', 'dog')],
  'a form that has the text of a boundary in a field': [
    edit('complete x\r\n--boundary\r\nContent-Disposition: form-data; name="user"\r\n\r\ny', 'other'),
    edit('complete x\r\n--boundary\r\nContent-Disposition: form-data; name="user"\r\n\r\ny', 'boundary'),
  ],
  'another model at the same address': [
    {
      path: `/api/v1beta/models/${PEER}:generateContent`,
      body: JSON.stringify({
        contents: [{ role: 'user', parts: [{ text: 'complete' }] }],
        generationConfig: { maxOutputTokens: 5_000 },
      }),
    },
    {
      path: `/api/v1beta/models/${NATIVE_PEER}:generateContent`,
      body: JSON.stringify({
        contents: [{ role: 'user', parts: [{ text: 'complete' }] }],
        generationConfig: { maxOutputTokens: 5_000 },
      }),
    },
  ],
  'another value of an argument': [tool('{"text":"complete","to":"a"}'), tool('{"text":"complete","to":"b"}')],
  'a number that reads the same once it is rounded, to a tool': [
    tool('{"text":"complete","sum":9007199254740992}'),
    tool('{"text":"complete","sum":9007199254740993}'),
  ],
  'a number that reads the same once it is rounded, to an agent': [
    agent('{"sum":9007199254740992}'),
    agent('{"sum":9007199254740993}'),
  ],
  'metadata of the request, to an agent': [
    agent({}, ',"metadata":{"mode":"rehearsal"}'),
    agent({}, ',"metadata":{"mode":"real"}'),
  ],
  'the address to which an agent sends its results': [
    agent({}, ',"configuration":{"acceptedOutputModes":["text/plain"]}'),
    agent({}, ',"configuration":{"acceptedOutputModes":["text/html"]}'),
  ],
  'an agent of the name of the tool': [
    {
      path: `/mcp/${PEER}`,
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"do","arguments":{"text":"complete"}}}`,
    },
    agent({ name: 'do', arguments: { text: 'complete' } }),
  ],
};

describe('a program changes its request between the decision and the run', () => {
  test.each(Object.entries(CHANGED))('%s', async (_name, [accepted, changed]) => {
    const { send, decide, money } = await world();
    const before = await money();
    const { id, text } = await send(accepted);
    expect(text).toContain('approval');
    expect((await decide(id!, 'accept')).status).toBe(200);
    const calls = provider.calls();
    const second = await send(changed);
    expect(second.id, second.text).not.toBeNull();
    expect(second.id).not.toBe(id);
    expect([provider.calls(), await money()]).toEqual([calls, before]);
    // What was accepted still runs, once.
    expect((await send(accepted)).id).toBeNull();
    expect(provider.calls()).toBe(calls + 1);
    expect((await send(accepted)).id).not.toBeNull();
    expect(provider.calls()).toBe(calls + 1);
  });
});

test('a repeat of a form with another boundary, and of a message with another id, is the same request', async () => {
  for (const [one, other] of [
    [edit('complete', 'one'), edit('complete', 'another-one')],
    [agent({}), agent({})],
  ] as const) {
    const { send } = await world();
    const { id } = await send(one);
    expect(id).not.toBeNull();
    expect((await send(other)).id).toBe(id);
  }
});

describe('a person is deceived', () => {
  test('by characters that hide or turn the text: they are written out', async () => {
    const { send, list } = await world();
    await send(tool(`{"text":"complete","to":"\u202ecilam\u202c\u200b\u2066","note":"\u{e0041}"}`));
    const [shown] = await list();
    expect(shown!.preview).not.toMatch(/[^\P{C}\n\t]/u);
    expect(shown!.preview).toContain('"to":"\\u{202e}cilam\\u{202c}\\u{200b}\\u{2066}","note":"\\u{e0041}"');
  });

  test('by so much text that the end is not shown: it is said how much is missing', async () => {
    const { send, list } = await world();
    const sentText = tool(`{"text":"complete","note":"${'harmless '.repeat(400)}","to":"mallory"}`);
    await send(sentText);
    const [shown] = await list();
    expect(shown!.preview).not.toContain('mallory');
    expect(shown!.preview).toMatch(/\n… and 1[0-9]{3} more bytes, which are not shown$/);
    // A text that fits has no such end.
    const other = await world();
    await other.send(tool('{"text":"complete"}'));
    expect((await other.list())[0]!.preview).toBe('"do" {"text":"complete"}');
  });
});

describe('somebody decides who may not', () => {
  const waiting = async () => {
    const own = await world();
    const { id } = await own.send(chat('wanted'));
    const undecided = async () => {
      expect(await own.list()).toMatchObject([{ id, state: 'waiting' }]);
      expect((await own.send(chat('wanted'))).id).toBe(id);
    };
    return { ...own, id: id!, undecided };
  };

  test('another account, also one that names this account', async () => {
    const { id, account, decide, undecided } = await waiting();
    const stranger = await spine.tenant(`stranger-${(tenants += 1)}`, '1');
    for (const headers of [{}, { 'x-tollgate-account': account }])
      expect((await decide(id, 'accept', stranger.key, headers)).status).toBe(404);
    await undecided();
  });

  test('the key that asks, another key with limits, and a key that was deleted', async () => {
    const { id, account, key, decide, undecided } = await waiting();
    const limited = (await spine.app.keys.create({ account, label: 'few', kind: 'live', limit: 1_000n }))!.text;
    const former = (await spine.app.keys.create({ account, label: 'former', kind: 'live' }))!;
    await spine.app.keys.delete(account, former.record.hash);
    for (const by of [key, limited]) expect((await decide(id, 'accept', by)).status).toBe(403);
    expect((await decide(id, 'accept', former.text)).status).toBe(401);
    await undecided();
  });

  test('a viewer and a member of the organisation', async () => {
    const { id, account, full, decide, undecided } = await waiting();
    const acting = { 'x-tollgate-account': account };
    for (const role of ['viewer', 'member'] as const) {
      const person = await spine.tenant(`${role}-${(tenants += 1)}`, '0');
      const added = await spine.post(
        '/members',
        { account: person.account, role },
        { authorization: `Bearer ${full}` },
      );
      expect(added.status).toBe(201);
      expect((await decide(id, 'accept', person.key, acting)).status).toBe(403);
    }
    await undecided();
    expect((await decide(id, 'refuse', full)).status).toBe(200);
  });

  test('a page of another site, and whoever has stolen the cookie', async () => {
    const { id, full, undecided } = await waiting();
    const browser = openBrowser(spine.origin);
    expect((await browser.ask('POST', '/api/v1/auth/session', { api_key: full })).status).toBe(200);
    const accept = (headers: Readonly<Record<string, string>>) =>
      browser.ask('POST', `/api/v1/approvals/${id}`, { decision: 'accept' }, headers);
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'x-tollgate-web': '' }])
      expect((await accept(headers as Record<string, string>)).status).toBe(403);
    expect((await accept({})).status).toBe(401);
    // A link or a form of another site has no such method or type.
    expect((await browser.ask('GET', `/api/v1/approvals/${id}?decision=accept`)).status).toBe(405);
    const form = await fetch(`${spine.url}/approvals/${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${full}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'decision=accept',
    });
    expect(form.status).toBe(400);
    await undecided();
  });
});

test('of decisions at the same time one counts, and runs at the same time are one', async () => {
  const { send, decide, list, money } = await world();
  const before = await money();
  for (const round of [1, 2, 3, 4, 5]) {
    const { id } = await send(chat(`round ${round}`));
    const decisions = ['accept', 'refuse', 'accept', 'refuse', 'accept'];
    const answers = await Promise.all(decisions.map((decision) => decide(id!, decision)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 422, 422, 422, 422]);
    const accepted = decisions[answers.findIndex(({ status }) => status === 200)] === 'accept';
    expect((await list()).find((one) => one.id === id)!.state).toBe(accepted ? 'accepted' : 'refused');
    const calls = provider.calls();
    await Promise.all(Array.from({ length: 8 }, () => send(chat(`round ${round}`))));
    expect(provider.calls() - calls).toBe(accepted ? 1 : 0);
  }
  await spine.quiet();
  expect(before - (await money())).toBeLessThanOrEqual(5_000n);
});
