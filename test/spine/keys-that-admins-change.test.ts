import { expect, test } from 'vitest';
import { spineOfFile } from '../support/of-file.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { createOrganisations } from './organisation-world.ts';

const spine = spineOfFile(() => ({ toml: UNHURRIED }));
const { call, organisation } = createOrganisations(() => spine);
const chat = async (key: string) => (await call(key, 'POST', '/chat/completions', ask('hello !tokens:50'))).status;

test('an admin gets no more by the text or the limits of the keys of others', async () => {
  const { account, people, as, path } = await organisation();
  const made = async (by: 'owner' | 'admin' | 'member') => {
    const { key, data } = (await as(by)('POST', '/keys', { limit: 1 })).body;
    return { key: key!, path: `/keys/${(data! as { hash: string }).hash}` };
  };
  const key = { limit: 0.5, name: 'of the account' };
  const own = await call(spine.adminKey, 'POST', `/admin/v1/accounts/${encodeURIComponent(account)}/keys`, key);
  const ofAccount = `/keys/${(own.body.data! as { hash: string }).hash}`;
  const [ofOwner, ofAdmin, ofMember] = [await made('owner'), await made('admin'), await made('member')];
  const statuses = (by: 'owner' | 'admin', method: string, at: string, body: object) =>
    Promise.all(
      [ofAccount, ofOwner.path, ofMember.path, ofAdmin.path].map(
        async (path) => (await as(by)(method, path + at, body)).status,
      ),
    );
  expect(await statuses('admin', 'POST', '/rotate', {})).toEqual([403, 403, 403, 201]);
  expect(await statuses('admin', 'PATCH', '', { limit: null })).toEqual([403, 403, 200, 200]);
  expect(await statuses('admin', 'PATCH', '', { expires_at: null })).toEqual([403, 403, 200, 200]);
  expect(await statuses('admin', 'PATCH', '', { disabled: true, name: 'stopped' })).toEqual([200, 200, 200, 200]);
  expect(await statuses('admin', 'PATCH', '', { disabled: false })).toEqual([403, 403, 200, 200]);
  expect(await statuses('owner', 'PATCH', '', { disabled: false, limit: null })).toEqual([200, 200, 200, 200]);
  expect(await statuses('owner', 'POST', '/rotate', {})).toEqual([201, 201, 201, 201]);
  // The text of a member stays the member's.
  const again = await as('member')('POST', `${ofMember.path}/rotate`, {});
  expect([again.status, await chat(again.body.key!)]).toEqual([201, 200]);
  expect((await call(people.admin.key, 'POST', `${ofAccount}/rotate`, {})).status).toBe(404);
  // An admin who has a budget could be given a key of somebody who has none.
  const budgets = [{ limit: 1 }];
  expect((await as('owner')('PATCH', path('admin'), { budgets })).status).toBe(200);
  expect(await statuses('admin', 'PATCH', '', { limit: null })).toEqual([403, 403, 403, 200]);
});
