import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { escrowOf } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';
import { routesOf } from '../support/route-table.ts';

const CHANGING = ['POST', 'PATCH', 'PUT', 'DELETE'];

/** The role for each change of the admin API, by docs/reference/admin-api.md. All others need TOLLGATE_ADMIN_KEY. */
const DOCUMENTED = new Map(
  readFileSync(new URL('../../docs/reference/admin-api.md', import.meta.url), 'utf8')
    .matchAll(
      /^\| `((?:POST|PATCH|PUT|DELETE) [^`]+)` \| `(\w+)`(?:; with a role that can spend also `credit`)? \| [^|]+ \|$/gm,
    )
    .map(([, change, role]) => [change!, role!] as const),
);
/** The changes that only TOLLGATE_ADMIN_KEY may make. A new route is one until somebody has given it a role. */
const OF_ROOT = [
  'POST /archives',
  'POST /admin-keys',
  'DELETE /admin-keys/{id}',
  'POST /withdrawals',
  'POST /treasury/acts/{id}/cancel',
  'POST /treasury/differences',
  'POST /treasury/losses/made-good',
  'POST /treasury/moves',
  'POST /treasury/moves/{id}/arrival',
  // Signs a browser out, with or without a key.
  'DELETE /session',
];
const ROLES = ['read', 'credit', 'configure'] as const;

interface Made {
  readonly data: { readonly id: string; readonly state: string };
  readonly key: string;
}
interface Act {
  readonly id: string;
  readonly actor: string;
  readonly label: string | null;
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly status: number | null;
}

describe.each(ENGINES)('on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  const made = {} as Record<(typeof ROLES)[number], Made>;
  beforeAll(async () => {
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url });
    } else spine = await startSpine();
    for (const role of ROLES) {
      const response = await admin('POST', '/admin-keys', spine.adminKey, { label: `key to ${role}`, roles: [role] });
      expect(response.status).toBe(201);
      made[role] = (await response.json()) as Made;
    }
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
  });

  const admin = (method: string, path: string, key: string, body?: object) =>
    fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        'x-tollgate-web': '1',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const page = async (query = '') => {
    const response = await admin('GET', `/audit-log${query}`, made.read.key);
    expect(response.status).toBe(200);
    return (await response.json()) as { data: readonly Act[]; next_cursor: string | null };
  };

  it('each change has its role, and other keys are refused', async () => {
    const changes = routesOf(spine.app.server)
      .filter(({ method, path }) => path.startsWith('/admin/v1/') && CHANGING.includes(method))
      .map(({ method, path }) => `${method} ${path.slice('/admin/v1'.length).replaceAll(/:(\w+)/g, '{$1}')}`);
    expect(changes.toSorted()).toEqual([...DOCUMENTED.keys(), ...OF_ROOT].toSorted());
    for (const change of changes) {
      const [method, path] = change.split(' ') as [string, string];
      const needed = DOCUMENTED.get(change) ?? null;
      for (const role of ROLES) {
        const { status } = await admin(method, path.replaceAll(/\{\w+\}/g, 'x'), made[role].key);
        if (role === needed || needed === 'read') expect(status, `${change} by ${role}`).not.toBe(403);
        else expect(status, `${change} by ${role}`).toBe(403);
      }
    }
  });

  it('every key reads', async () => {
    for (const role of ROLES) {
      for (const path of ['/accounts', '/admin-keys', '/audit'])
        expect((await admin('GET', path, made[role].key)).status, path).toBe(200);
      const metrics = await fetch(`${spine.origin}/metrics`, {
        headers: { authorization: `Bearer ${made[role].key}` },
      });
      expect(metrics.status).toBe(200);
    }
  });

  it('every key finds a call of any account, by its id, and with the account by that of its request', async () => {
    const asked = await spine.post('/chat/completions', ask('hello !tokens:7'), { 'x-request-id': 'asked-for-1' });
    await asked.text();
    await spine.quiet();
    const failed = await spine.post('/chat/completions', ask('!status:400'), { 'x-request-id': 'asked-for-2' });
    await failed.text();
    await spine.quiet();
    const [id, failedId] = [asked, failed].map(({ headers }) => headers.get('x-generation-id')!) as [string, string];
    const find = async (path: string) => {
      const response = await admin('GET', `/calls/${path}`, made.read.key);
      return { status: response.status, ...((await response.json()) as { data?: object; error?: object }) };
    };
    const { receipt, ...known } = await spine.generation(id);
    const { waiting: _, ...own } = known as typeof known & { readonly waiting: boolean };
    expect(receipt).toMatch(/^ey/);
    expect(own).toMatchObject({
      account: spine.account,
      request_id: 'asked-for-1',
      state: 'settled',
      tokens_completion: 7,
    });
    expect(own.cost_micro_usdc).toBeGreaterThan(0);
    // What the owner of the account sees, but for the receipt, which is its own.
    expect(await find(id)).toEqual({ status: 200, data: own });
    expect(await find(`asked-for-1?account=${spine.account}`)).toEqual({ status: 200, data: own });
    expect(await find(`asked-for-2?account=${spine.account}`)).toMatchObject({
      status: 200,
      data: { id: failedId, state: 'released', cost_micro_usdc: 0, error: expect.stringMatching(/./) as string },
    });

    const refused = (message: RegExp) => ({
      status: 404,
      error: { message: expect.stringMatching(message) as string },
    });
    expect(await find('asked-for-1')).toMatchObject(refused(/x-request-id of a call, name the account/));
    expect(await find(`asked-for-_?account=${spine.account}`)).toMatchObject(
      refused(/^No call of this account has this id/),
    );
    expect(await find('asked-for-1?account=tollgate:local:nobody')).toMatchObject(refused(/^Account not found/));
    expect((await admin('GET', `/calls/${id}`, spine.key)).status).toBe(401);
  });

  it('what was changed is in the log, with who, what and the outcome', async () => {
    const { key, data } = made.credit;
    await admin('POST', '/accounts', key, { name: 'logged' });
    const path = '/accounts/tollgate:local:logged';
    expect((await admin('POST', `${path}/credit`, key, { amount_usd: 3, reference: 'invoice-9' })).status).toBe(200);
    await admin('POST', `${path}/credit`, made.read.key, { amount_usd: 4, reference: 'invoice-10' });
    const own = (await (await admin('POST', `${path}/keys`, key, {})).json()) as { key: string };
    await admin('GET', path, key);
    await expect
      .poll(async () => (await page()).data.slice(0, 4).map(({ status }) => status))
      .toEqual([201, 403, 200, 201]);
    const [made4, refused, credited, created] = (await page()).data;
    expect(credited).toMatchObject({
      actor: data.id,
      label: 'key to credit',
      method: 'POST',
      path: `/admin/v1${path}/credit`,
      body: '{"amount_usd":3,"reference":"invoice-9"}',
    });
    expect(refused).toMatchObject({ actor: made.read.data.id, path: `/admin/v1${path}/credit` });
    expect(created).toMatchObject({ path: '/admin/v1/accounts', body: '{"name":"logged"}' });
    expect(made4).toMatchObject({ path: `/admin/v1${path}/keys` });
    const text = JSON.stringify((await page('?limit=100')).data) + spine.logs.join('');
    for (const secret of [own.key, key, spine.adminKey]) expect(text).not.toContain(secret);
    const newest = await page('?limit=100');
    const older = newest.next_cursor === null ? newest : await page(`?limit=100&cursor=${newest.next_cursor}`);
    expect(older.data.at(-1)).toMatchObject({ actor: 'root', path: '/admin/v1/admin-keys' });
  });

  it('its pages follow each other', async () => {
    // The newest; there may be more.
    const all = (await page('?limit=100')).data;
    const found: Act[] = [];
    let cursor: string | null = null;
    do {
      const next = await page(`?limit=7${cursor === null ? '' : `&cursor=${cursor}`}`);
      found.push(...next.data);
      cursor = next.next_cursor;
    } while (cursor !== null && found.length < all.length);
    expect(found.slice(0, all.length).map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  });

  it('a revoked key, an expired one, and one that nobody made are refused', async () => {
    const revoked = await admin('DELETE', `/admin-keys/${made.configure.data.id}`, spine.adminKey);
    expect(((await revoked.json()) as Made).data.state).toBe('revoked');
    expect((await admin('GET', '/accounts', made.configure.key)).status).toBe(401);

    const soon = { label: 'soon over', roles: ['read'], expires_at: new Date(Date.now() + 3_600_000).toISOString() };
    const short = (await (await admin('POST', '/admin-keys', spine.adminKey, soon)).json()) as Made;
    expect((await admin('GET', '/accounts', short.key)).status).toBe(200);
    await spine.app.database.query(adHoc(`UPDATE admin_keys SET expires_at = 1 WHERE id = '${short.data.id}'`));
    expect((await admin('GET', '/accounts', short.key)).status).toBe(401);

    const wrong = `${short.key.slice(0, -1)}${short.key.endsWith('2') ? '3' : '2'}`;
    expect((await admin('GET', '/accounts', wrong)).status).toBe(401);
    expect((await admin('POST', '/admin-keys', spine.adminKey, { label: 'x', roles: ['all'] })).status).toBe(400);
    const past = { ...soon, expires_at: '2020-01-01T00:00:00Z' };
    expect((await admin('POST', '/admin-keys', spine.adminKey, past)).status).toBe(400);
    const keys = (await (await admin('GET', '/admin-keys', spine.adminKey)).json()) as { data: { state: string }[] };
    // Keys of one millisecond are listed in any order.
    expect(keys.data.map(({ state }) => state).toSorted()).toEqual(['active', 'active', 'expired', 'revoked']);
  });

  it('nothing is changed that cannot be logged', async () => {
    await spine.app.database.query(adHoc('ALTER TABLE admin_log RENAME TO gone'));
    const path = '/accounts/tollgate:local:logged/credit';
    const before = await spine.app.ledger.balance(escrowOf('tollgate:local:logged'));
    const refused = await admin('POST', path, spine.adminKey, { amount_usd: 9, reference: 'unlogged' });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    expect(await spine.app.ledger.balance(escrowOf('tollgate:local:logged'))).toEqual(before);
    await spine.app.database.query(adHoc('ALTER TABLE gone RENAME TO admin_log'));
    expect((await admin('POST', path, spine.adminKey, { amount_usd: 9, reference: 'logged' })).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  });
});
