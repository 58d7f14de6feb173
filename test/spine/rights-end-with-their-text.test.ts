import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRunTokens } from '#auth';
import { createPerson } from '../gateway/authorization/support/person.ts';
import { registerRaw } from '../gateway/authorization/support/raw-client.ts';
import { createKeyAuthenticator } from '../gateway/auth/key-authenticator.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startVoiceGateway, type VoiceGateway } from '../openai/realtime/support/voice-gateway.ts';
import { routesOf } from '../support/route-table.ts';
import { ask, type Spine, UNHURRIED } from '../support/spine.ts';

/*
 * What a text of a key may do when it was replaced, and what becomes of each credential that was made with a text:
 * made by × ended by. docs/reference/account-states.md says the same to people.
 */

let gateway: VoiceGateway;
let spine: Spine;
beforeAll(async () => {
  gateway = await startVoiceGateway({
    mode: 'development',
    toml: `${UNHURRIED}anonymous_requests_per_minute = 100000\n`,
  });
  ({ spine } = gateway);
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await gateway.stop();
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const callWith = async (headers: Record<string, string>): Promise<boolean> =>
  (
    await fetch(`${spine.url}/chat/completions`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(ask('hello')),
    })
  ).ok;
const REPLACED = 'This text of the key was replaced';

describe('in its grace the text before', () => {
  let old: string;
  let hash: string;
  let owner: string;
  let present: string;
  beforeAll(async () => {
    ({ key: old, hash, account: owner } = await spine.tenant('in-grace', '10'));
    const made = await spine.post(`/keys/${hash}/rotate`, { grace_seconds: 3600 }, bearer(old));
    expect(made.status).toBe(201);
    present = ((await made.json()) as { key: string }).key;
  });

  test('calls, and reads', async () => {
    expect(await callWith(bearer(old))).toBe(true);
    for (const path of ['/key', '/keys', '/credits', '/models', '/generations'])
      expect((await spine.get(path, bearer(old))).status, path).toBe(200);
  });

  /** The changing routes at which a text in its grace counts: those that call, and those that are a part of calls. */
  const OF_CALLS =
    /^(?:\/api\/v1)?\/(?:a2a|mcp|sse)(?:\/|$)|^\/(?:api\/)?v[12](?:beta)?\/(?:audio|batches|chat|completions|embeddings|files|image|images|messages|models|moderations|rerank|responses|tool|quotes?|video|videos)(?:[/:]|$)|^\/(?:api\/)?v1\/topup$/;
  /** The changing routes at which no credential of an account counts. */
  const WITHOUT =
    /^\/(?:admin|authorize|oauth|internal|\.well-known|cluster)(?:\/|$)|\/auth\/(?:session$|people\/)|\/webhooks?\/|\/rpc$|^\/rpc/;

  test('does nothing else: no other route that writes takes it', async () => {
    const changing = routesOf(spine.app.server).filter(({ method }) =>
      ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method),
    );
    const refused: string[] = [];
    const taken: string[] = [];
    for (const { method, path } of changing) {
      const response = await fetch(spine.origin + path.replaceAll(/:\w+/g, 'x').replaceAll('*', 'x'), {
        method,
        headers: { ...bearer(old), ...(method === 'DELETE' ? {} : { 'content-type': 'application/json' }) },
        ...(method === 'DELETE' ? {} : { body: '{}' }),
      });
      const isRefused = response.status === 403 && (await response.text()).includes(REPLACED);
      (isRefused ? refused : taken).push(`${method} ${path}`);
    }
    const others = taken.filter((route) => !OF_CALLS.test(route.split(' ')[1]!) && !WITHOUT.test(route.split(' ')[1]!));
    expect(others).toEqual([]);
    expect(refused.filter((route) => /\/client_secrets|\/keys/.test(route)).length).toBeGreaterThan(3);
    expect(refused.filter((route) => OF_CALLS.test(route.split(' ')[1]!))).toEqual([]);
  });

  test('begins no session, lets no program sign in, and rotates nothing', async () => {
    const session = await fetch(`${spine.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
      body: JSON.stringify({ api_key: old }),
    });
    expect([session.status, await session.text()]).toEqual([403, expect.stringContaining(REPLACED)]);
    const client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
    await expect(client.signIn(createPerson(spine.origin, old))).rejects.toThrow();
    const again = await spine.post(`/keys/${hash}/rotate`, { grace_seconds: 0 }, bearer(old));
    expect(again.status).toBe(403);
    expect(await callWith(bearer(present))).toBe(true);
    expect((await spine.app.keys.list(owner, { offset: 0, limit: 100 })).map((key) => key.hash)).toEqual([hash]);
  });
});

interface Tenant {
  readonly account: string;
  readonly key: string;
  readonly hash: string;
}
type IsGood = () => Promise<boolean>;
const MADE: Readonly<Record<string, (tenant: Tenant) => Promise<IsGood>>> = {
  'the text itself':
    async ({ key }) =>
    () =>
      callWith(bearer(key)),
  'session of a browser': async ({ key }) => {
    const response = await fetch(`${spine.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
      body: JSON.stringify({ api_key: key }),
    });
    expect(response.status).toBe(200);
    const cookie = response.headers.get('set-cookie')!.split(';')[0]!;
    return () => callWith({ cookie, 'x-tollgate-web': '1' });
  },
  'client secret': async ({ key }) => {
    const body = { session: { type: 'realtime', model: 'voice' }, expires_after: { seconds: 7_200 } };
    const response = await spine.post('/realtime/client_secrets', body, bearer(key));
    const { value } = (await response.json()) as { value: string };
    return async () => {
      try {
        (await openRealtime(gateway.url, value)).socket.close();
        return true;
      } catch {
        return false;
      }
    };
  },
  // Its call goes on here; when that ends, so does the token: calls-under-a-call.test.ts.
  'run token': async ({ account, hash }) => {
    const secret = new Uint8Array(32);
    const runTokens = createRunTokens({ secret: Buffer.from(secret), now: Date.now });
    const text = runTokens.issue({ parent: 'gen-1', account, key: hash }, Date.now() + 3_600_000);
    return async () => {
      const { authenticate, close } = createKeyAuthenticator({
        keys: spine.app.keys,
        acceptDevelopmentKeys: true,
        now: Date.now,
        runTokens,
        findRun: async () => ({}),
      });
      try {
        return (await authenticate(bearer(text), true)).run?.parent === 'gen-1';
      } catch {
        return false;
      } finally {
        close();
      }
    };
  },
  'another key': async ({ key }) => {
    const made = (await (await spine.post('/keys', {}, bearer(key))).json()) as { key: string };
    return () => callWith(bearer(made.key));
  },
  'program that signed in': async ({ key }) => {
    const client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
    const { access_token: token } = await client.signIn(createPerson(spine.origin, key));
    return () => callWith(bearer(token));
  },
};

const freeze = async ({ account }: Tenant) => {
  const path = `${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/freeze`;
  const response = await fetch(path, {
    method: 'POST',
    headers: { ...bearer(spine.adminKey), 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'a test' }),
  });
  expect(response.status, await response.text()).toBe(200);
};
const rotation = (graceMs: number) => async (of: Tenant) => {
  expect(await spine.app.keys.rotate(of.account, of.hash, graceMs)).not.toBeNull();
};
const change = (changes: object) => async (of: Tenant) => {
  expect(await spine.app.keys.update(of.account, of.hash, changes)).not.toBeNull();
};
const NOT_ENDED = ['run token', 'another key', 'program that signed in'];
const OWN = ['another key', 'program that signed in'];
/** What is still good after each end. All else has ended. */
const ENDS: Readonly<Record<string, readonly [(of: Tenant) => Promise<unknown>, readonly string[]]>> = {
  'rotation with grace': [rotation(3_600_000), ['the text itself', 'client secret', ...NOT_ENDED]],
  'rotation without': [rotation(0), NOT_ENDED],
  disable: [change({ disabled: true }), OWN],
  delete: [async ({ account, hash }) => expect(await spine.app.keys.delete(account, hash)).toBe(true), OWN],
  expiry: [change({ expiresAt: 1 }), OWN],
  // A call under a lock that was made before goes on.
  freeze: [freeze, ['run token']],
};

test.each(Object.entries(ENDS))('what was made with a text, after %s', async (what, [end, good]) => {
  const tenant = await spine.tenant(`ends-by-${what.replaceAll(' ', '-')}`, '10');
  const made = new Map<string, IsGood>();
  for (const [kind, make] of Object.entries(MADE)) made.set(kind, await make(tenant));
  for (const [kind, isGood] of made) expect(await isGood(), kind).toBe(true);
  await end(tenant);
  for (const [kind, isGood] of made)
    await expect.poll(isGood, { timeout: 20_000, message: kind }).toBe(good.includes(kind));
});

/*
 * Each purpose of the gateway's secrets in the sources: a new one is a credential that belongs into the table above, or
 * it is none of an account.
 */
const CREDENTIALS: Readonly<Record<string, string>> = {
  'run tokens': 'run token',
  'client secrets': 'client secret',
};
const NO_CREDENTIALS = [
  'admin sessions',
  'agent cards',
  'answers to programs',
  'approvals',
  'authorization cookies',
  'authorization server',
  'batches',
  'callbacks of batches',
  'callbacks of videos',
  'client secrets of the authorization server',
  'cluster',
  'consumers of tools',
  'former seeds',
  'journal head',
  'kept responses',
  'mcp state',
  'provider keys',
  // They are of a program, see above.
  'refresh tokens',
  'sign-in nonces',
  'sign-ins of people',
  'thinking of models',
  'tokens of people',
  'unpaid tasks',
  'account webhooks',
  'webhooks',
];

test('each kind of credential in the sources is in the table', () => {
  const purposes = new Set<string>();
  for (const file of readdirSync('src', { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.ts'))
      for (const [, purpose] of readFileSync(join('src', file), 'utf8').matchAll(
        /\.(?:secret|secrets|accepted|secretBy)\(\s*'([^']+)'/g,
      ))
        purposes.add(purpose!);
  expect([...purposes].toSorted()).toEqual([...Object.keys(CREDENTIALS), ...NO_CREDENTIALS].toSorted());
  for (const kind of Object.values(CREDENTIALS)) expect(MADE).toHaveProperty([kind]);
});
