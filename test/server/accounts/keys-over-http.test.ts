import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { openWorld, type Answer, type ErrorBody, type World } from './gateway-world.ts';

type Key = Record<string, unknown> & { readonly hash: string };
interface Made {
  readonly key: string;
  readonly data: Key;
}
interface One {
  readonly data: Key;
}
interface List {
  readonly data: readonly Key[];
}

const KEYS = '/api/v1/keys';

async function world() {
  const opened = await openWorld();
  const alice = await opened.tenant('alice');
  const make = (body: unknown): Promise<Answer<Made & ErrorBody>> => opened.call(alice.key, 'POST', KEYS, body);
  return { ...opened, alice, make };
}

/** Spends through the budget of a key, as calls do. */
async function spend(
  { ledger, price, clock }: World,
  id: string,
  account: string,
  budget: { id: string; limit: bigint },
  charge: bigint,
) {
  const locked = await ledger.lock({
    id,
    account,
    amount: charge,
    prices: [price],
    expiresAt: clock.now + 1_000,
    detail: '{}',
    budgets: [budget],
  });
  if (locked.ok)
    await ledger.settle({ id, price, provider: 'p', charge, draw: false, feeBps: 0, usage: '{}', detail: '{}' });
  return locked;
}

describe('keys over HTTP', () => {
  it('need a body: without one no key is made, and an empty one asks for no limits', async () => {
    const { call, alice, make, adminKey } = await world();
    for (const [who, path] of [
      [alice.key, KEYS],
      [adminKey, `/admin/v1/accounts/${alice.account}/keys`],
    ] as const)
      for (const body of [undefined, null]) {
        const refused = await call<ErrorBody>(who, 'POST', path, body);
        expect([refused.status, refused.body.error.type], path).toEqual([400, 'invalid_request']);
        expect(refused.body.error.message).toMatch(
          /^The body must be a JSON object \(\{\} makes a key without limits\), not null$/,
        );
      }
    expect((await make({})).status).toBe(201);
    expect((await call<{ data: unknown[] }>(alice.key, 'GET', KEYS)).body.data).toHaveLength(2);
  });

  it('are made with their limits, shown in full once, and work', async () => {
    const { call, make, alice } = await world();
    const { status, body } = await make({
      name: 'robot',
      limit: 2.5,
      limit_reset: 'monthly',
      expires_at: '2027-01-01T00:00:00+02:00',
      allowed_services: ['author/model'],
    });
    expect(status).toBe(201);
    expect(body.key).toMatch(/^svc-sk-v2-[1-9A-HJ-NP-Za-km-z]{44,50}$/);
    expect(body.data).toMatchObject({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      name: 'robot',
      label: 'robot',
      disabled: false,
      limit: 2.5,
      limit_remaining: 2.5,
      limit_reset: 'monthly',
      usage: 0,
      usage_daily: 0,
      usage_weekly: 0,
      usage_monthly: 0,
      created_at: '2026-03-04T05:06:07.089Z',
      expires_at: '2026-12-31T22:00:00.000Z',
      allowed_services: ['author/model'],
      development: false,
    });
    const shown = await call<One>(body.key, 'GET', '/api/v1/key');
    expect(shown.body.data).toEqual({
      ...body.data,
      rate_limit: { requests: 60, tokens: 1_000_000, interval: '60s', note: expect.stringContaining('steady rate') },
    });
    const list = await call<List>(alice.key, 'GET', KEYS);
    expect(new Set(list.body.data.map((key) => key['name']))).toEqual(new Set(['alice', 'robot']));
    expect(JSON.stringify(list.body)).not.toContain(body.key.slice(10));
  });

  it('show what they have spent, and what is left of their limit', async () => {
    const opened = await world();
    const { call, make, alice, keys } = opened;
    const limited = (await make({ name: 'limited', limit: 1, limit_reset: 'daily' })).body;
    const day = { id: `${limited.data.hash}:daily-2026-03-04`, limit: 1_000_000n };
    expect(await spend(opened, 'gen-1', alice.account, day, 400_000n)).toMatchObject({ ok: true });
    expect(await spend(opened, 'gen-2', alice.account, day, 700_000n)).toMatchObject({
      ok: false,
      reason: 'budget_exceeded',
    });
    expect((await call<One>(limited.key, 'GET', '/api/v1/key')).body.data).toMatchObject({
      usage: 0.4,
      usage_daily: 0.4,
      usage_weekly: 0.4,
      usage_monthly: 0.4,
      limit: 1,
      limit_remaining: 0.6,
    });
    opened.clock.now += 86_400_000;
    expect((await call<One>(limited.key, 'GET', '/api/v1/key')).body.data).toMatchObject({
      usage: 0.4,
      usage_daily: 0,
      usage_weekly: 0.4,
      usage_monthly: 0.4,
      limit_remaining: 1,
    });

    // One without a limit is counted too.
    await spend(opened, 'gen-3', alice.account, { id: `${alice.hash}:all`, limit: 2n ** 61n }, 5n);
    expect((await call<One>(alice.key, 'GET', '/api/v1/key')).body.data).toMatchObject({
      usage: 0.000005,
      limit: null,
      limit_remaining: null,
    });
    // A limit below what is spent leaves nothing, not less.
    await keys.update(alice.account, alice.hash, { limit: 1n });
    expect((await call<One>(alice.key, 'GET', '/api/v1/key')).body.data).toMatchObject({
      limit: 0.000001,
      limit_remaining: 0,
    });
  });

  it('show all that they have spent, whatever limit they had', async () => {
    const opened = await world();
    const { call, make, alice } = opened;
    const { key, data } = (await make({ name: 'robot' })).body;
    const limits = { limit: 10_000_000n };
    const shown = async (change: object) => {
      expect((await call(alice.key, 'PATCH', `${KEYS}/${data.hash}`, change)).status).toBe(200);
      return (await call<One>(key, 'GET', '/api/v1/key')).body.data;
    };
    await spend(opened, 'gen-1', alice.account, { ...limits, id: `${data.hash}:all` }, 100_000n);
    // A limit that is new counts what its period has, and the key has spent what it has spent.
    expect(await shown({ limit: 1, limit_reset: 'daily' })).toMatchObject({
      limit_remaining: 0.9,
      usage: 0.1,
      usage_daily: 0.1,
      usage_weekly: 0.1,
      usage_monthly: 0.1,
    });
    await spend(opened, 'gen-2', alice.account, { ...limits, id: `${data.hash}:daily-2026-03-04` }, 200_000n);
    expect(await shown({ limit_reset: 'monthly' })).toMatchObject({
      limit_remaining: 0.7,
      usage: 0.3,
      usage_monthly: 0.3,
    });
    await spend(opened, 'gen-3', alice.account, { ...limits, id: `${data.hash}:monthly-2026-03-01` }, 400_000n);
    // One that never starts anew counts all.
    expect(await shown({ limit_reset: null })).toMatchObject({
      limit_remaining: 0.3,
      usage: 0.7,
      usage_daily: 0.7,
      usage_monthly: 0.7,
    });
  });

  it('are changed, disabled, enabled and deleted, with effect at once', async () => {
    const { call, make, alice } = await world();
    const { key, data } = (await make({ label: 'robot', limit: 1 })).body;
    const path = `${KEYS}/${data.hash}`;
    const works = async () => (await call(key, 'GET', '/api/v1/session/balance')).status;
    expect(await works()).toBe(200);
    expect((await call<One>(alice.key, 'PATCH', path, { disabled: true })).body.data).toMatchObject({
      disabled: true,
      name: 'robot',
      limit: 1,
    });
    expect(await works()).toBe(401);
    expect(
      (
        await call<One>(alice.key, 'PATCH', path, {
          disabled: false,
          name: 'android',
          limit: null,
          allowed_services: ['x'],
        })
      ).body.data,
    ).toMatchObject({
      disabled: false,
      name: 'android',
      limit: null,
      allowed_services: ['x'],
    });
    expect(await works()).toBe(200);
    expect((await call(alice.key, 'DELETE', path)).body).toEqual({
      deleted: true,
      data: { hash: data.hash, deleted: true },
    });
    expect(await works()).toBe(401);
    expect((await call(alice.key, 'DELETE', path)).status).toBe(404);
    expect((await call(alice.key, 'PATCH', path, {})).status).toBe(404);
  });

  it('are listed a page at a time', async () => {
    const { call, make, alice, clock } = await world();
    for (const name of ['b', 'c', 'd']) {
      clock.now += 1;
      await make({ name });
    }
    const names = async (query: string) =>
      (await call<List>(alice.key, 'GET', KEYS + query)).body.data.map((key) => key['name']);
    expect(await names('?offset=1&limit=2')).toEqual(['b', 'c']);
    expect(await names('?offset=3')).toEqual(['d']);
    for (const query of ['?offset=-1', '?limit=0', '?limit=101', '?limit=x'])
      expect((await call(alice.key, 'GET', KEYS + query)).status).toBe(400);
  });

  it('refuse what cannot be meant, and say which field is wrong', async () => {
    const { call, alice, failures } = await world();
    const wrong: readonly (readonly [body: unknown, param: string | null])[] = [
      [{ limit: -1 }, 'limit'],
      [{ limit: '5' }, 'limit'],
      [{ limit: 0.0000001 }, 'limit'],
      [{ limit: 1e300 }, 'limit'],
      [{ limit_reset: 'hourly' }, 'limit_reset'],
      [{ expires_at: 'tomorrow' }, 'expires_at'],
      [{ expires_at: '2027-01-01T00:00:00' }, 'expires_at'],
      [{ expires_at: '2027-13-01T00:00:00Z' }, 'expires_at'],
      [{ expires_at: '2030-02-30T00:00:00Z' }, 'expires_at'],
      [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [{ allowed_services: 'all' }, 'allowed_services'],
      [{ allowed_services: [] }, 'allowed_services'],
      [{ allowed_services: ['-a'] }, 'allowed_services'],
      [{ allowed_services: ['a', 'b/'] }, 'allowed_services[1]'],
      [{ allowed_services: ['x'.repeat(257)] }, 'allowed_services[0]'],
      [{ allowed_services: Array.from({ length: 101 }, (_, i) => `a${i}`) }, 'allowed_services'],
      [{ name: '' }, 'name'],
      [{ name: '   ' }, 'name'],
      [{ name: 'x'.repeat(129) }, 'name'],
      [{ disabled: 'yes' }, 'disabled'],
      [[], null],
    ];
    for (const [body, param] of wrong) {
      const answer = await call<ErrorBody>(alice.key, 'PATCH', `${KEYS}/${alice.hash}`, body);
      expect([JSON.stringify(body), answer.status, answer.body.error.type, answer.body.error.param]).toEqual([
        JSON.stringify(body),
        400,
        'invalid_request',
        param,
      ]);
      if (param === 'disabled') continue;
      expect((await call<ErrorBody>(alice.key, 'POST', KEYS, body)).body.error).toMatchObject({ code: 400, param });
    }
    expect((await call<List>(alice.key, 'GET', KEYS)).body.data.length).toBe(1);
    expect(failures).toEqual([]);
  });

  it('with limits of their own cannot make or loosen keys, but delete themselves', async () => {
    const { call, make, alice, keys } = await world();
    for (const limit of [{ limit: 1 }, { expires_at: '2027-01-01T00:00:00Z' }, { allowed_services: ['x'] }]) {
      const { key, data } = (await make({ name: 'limited', ...limit })).body;
      const own = `${KEYS}/${data.hash}`;
      expect((await call<ErrorBody>(key, 'POST', KEYS, {})).body.error).toMatchObject({
        code: 403,
        type: 'permission_denied',
      });
      expect((await call(key, 'PATCH', own, { limit: null, expires_at: null, allowed_services: null })).status).toBe(
        403,
      );
      expect((await call(key, 'DELETE', `${KEYS}/${alice.hash}`)).status).toBe(403);
      expect((await call(key, 'GET', KEYS)).status).toBe(200);
      expect((await call(key, 'DELETE', own)).status).toBe(200);
      expect(await keys.find(data.hash)).toBeNull();
    }
  });

  it('of other accounts are as unknown as keys that do not exist', async () => {
    const { call, tenant, alice, keys } = await world();
    const bob = await tenant('bob');
    for (const [method, body] of [
      ['PATCH', { disabled: true }],
      ['DELETE', undefined],
    ] as const) {
      const foreign = await call<ErrorBody>(bob.key, method, `${KEYS}/${alice.hash}`, body);
      const unknown = await call<ErrorBody>(bob.key, method, `${KEYS}/${'0'.repeat(64)}`, body);
      expect(foreign.status).toBe(404);
      expect(foreign.body).toEqual(unknown.body);
    }
    expect(await keys.find(alice.hash)).toMatchObject({ disabled: false });
    expect((await call<List>(bob.key, 'GET', KEYS)).body.data.map((key) => key['name'])).toEqual(['bob']);
  });

  it('of the development account make development keys', async () => {
    const { call, keys } = await world();
    const development = (await keys.create({ account: 'tollgate:local:dev', label: 'dev', kind: 'development' }))!;
    const made = await call<Made>(development.text, 'POST', KEYS, {});
    expect(made.body.key).toMatch(/^svc-sk-dev-/);
    expect(made.body.data).toMatchObject({ development: true, name: 'key' });
  });

  it('are needed on every route, once', async () => {
    const { call, alice, url } = await world();
    const routes = [
      ['GET', '/session/balance'],
      ['GET', '/credits'],
      ['GET', '/generation?id=x'],
      ['GET', '/key'],
      ['GET', '/keys'],
      ['POST', '/keys'],
      ['PATCH', '/keys/x'],
      ['DELETE', '/keys/x'],
    ] as const;
    for (const [method, path] of routes) {
      const missing = await call<ErrorBody>(null, method, `/api/v1${path}`, method === 'GET' ? undefined : {});
      expect([method, path, missing.status, missing.body.error.type]).toEqual([method, path, 401, 'unauthorized']);
      expect(missing.headers.get('www-authenticate')).toBe('Bearer');
    }
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    const header = `Authorization: Bearer ${alice.key}\r\n`;
    socket.write(`GET /api/v1/session/balance HTTP/1.1\r\nHost: x\r\n${header}${header}Connection: close\r\n\r\n`);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1\.1 401 .*sent more than once/s);
  });
});
