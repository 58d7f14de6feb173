import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../support/spine.ts';

// A member with a role from `member` up can spend the money of the account. So only an admin key that may move money
// itself gives such a role.

const RICH = 'tollgate:local:rich';
const MEMBERS = `/accounts/${RICH}/members`;

let spine: Spine;
let helper: { readonly account: string; readonly key: string };
const keys = new Map<string, string>();
beforeAll(async () => {
  spine = await startSpine();
  for (const roles of [['read'], ['credit'], ['configure'], ['credit', 'configure']]) {
    const made = await admin('POST', '/admin-keys', 'root', { label: roles.join(), roles });
    keys.set(roles.join(), ((await made.json()) as { key: string }).key);
  }
  helper = await spine.tenant('helper', '0');
  await admin('POST', '/accounts', 'root', { name: 'rich' });
  // An account with members keeps an owner.
  await admin('POST', MEMBERS, 'root', { account: 'tollgate:local:boss', role: 'owner' });
});
afterAll(() => spine.stop());

const admin = (method: string, path: string, by: string, body?: object) =>
  fetch(`${spine.origin}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${by === 'root' ? spine.adminKey : keys.get(by)!}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const add = (by: string, role: string) => admin('POST', MEMBERS, by, { account: helper.account, role });
const change = (by: string, body: object) => admin('PATCH', `${MEMBERS}/${helper.account}`, by, body);
const remove = (by: string) => admin('DELETE', `${MEMBERS}/${helper.account}`, by);
/** Whether the helper can make a key of the account, which spends its money. */
const canSpend = async () => {
  const acting = { authorization: `Bearer ${helper.key}`, 'x-tollgate-account': RICH };
  const { status } = await spine.post('/keys', { name: 'mine' }, acting);
  expect([201, 403, 404]).toContain(status);
  return status === 201;
};

test.each(['member', 'admin', 'owner'])('%s is given by credit and configure together', async (role) => {
  for (const by of ['read', 'credit', 'configure']) {
    expect((await add(by, role)).status, by).toBe(403);
    expect(await canSpend(), by).toBe(false);
  }
  expect((await add('credit,configure', role)).status).toBe(201);
  expect(await canSpend()).toBe(true);
  expect((await remove('configure')).status).toBe(200);
});

test('a viewer is added by configure, and gets no other role from it', async () => {
  expect((await add('configure', 'viewer')).status).toBe(201);
  for (const role of ['member', 'admin', 'owner']) {
    const refused = await change('configure', { role, name: 'Helper' });
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      {
        error: {
          message: `The role ${role} can spend the money of the account: setting it needs an admin key with the role credit, too`,
        },
      },
    ]);
    expect(await canSpend()).toBe(false);
  }
  expect((await change('configure', { name: 'A viewer' })).status).toBe(200);
  expect((await change('credit,configure', { role: 'admin' })).status).toBe(200);
  expect(await canSpend()).toBe(true);
  // The way down takes rights and gives none.
  expect((await change('configure', { role: 'viewer' })).status).toBe(200);
  expect(await canSpend()).toBe(false);
});

test('the refusal is in the log of administrators, with its status', async () => {
  await add('configure', 'owner');
  await expect
    .poll(async () => ((await (await admin('GET', '/audit-log?limit=1', 'root')).json()) as { data: object[] }).data[0])
    .toMatchObject({ method: 'POST', path: `/admin/v1${MEMBERS}`, status: 403 });
});
