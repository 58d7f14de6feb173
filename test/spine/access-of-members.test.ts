import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

async function call(key: string, method: string, path: string, body?: object, of?: string) {
  const response = await fetch(`${spine.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(of === undefined ? {} : { 'x-tollgate-account': of }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}
const chat = (key: string) => call(key, 'POST', '/chat/completions', ask('hello !tokens:5'));

test('a member calls what both its key and its member may, from the next request on', async () => {
  const owner = await spine.tenant('owner', '0');
  const made = await call(owner.key, 'POST', '/organisations', { label: 'Acme' });
  const { account } = made.body['data']! as { account: string };
  await spine.app.ledger.transfer({
    id: 'fund',
    from: treasuryOf('operator'),
    to: escrowOf(account),
    amount: 1_000_000n,
    memo: '',
  });
  const people = { member: await spine.tenant('member', '0'), admin: await spine.tenant('admin', '0') };
  for (const role of ['member', 'admin'] as const)
    await call(owner.key, 'POST', '/members', { account: people[role].account, role }, account);
  const change = (patterns: readonly string[] | null, who: keyof typeof people = 'member', more: object = {}) =>
    call(
      people.admin.key,
      'PATCH',
      `/members/${encodeURIComponent(people[who].account)}`,
      { allowed_services: patterns, ...more },
      account,
    );
  const { key } = (await call(people.member.key, 'POST', '/keys', { allowed_services: ['test/*'] }, account)).body;
  expect(await chat(key!)).toMatchObject({ status: 200 });

  expect(await change(['*', '-test/model'])).toMatchObject({
    status: 200,
    body: { data: { allowed_services: ['*', '-test/model'], budgets: [] } },
  });
  expect(await chat(key!)).toMatchObject({
    status: 403,
    body: {
      error: {
        type: 'permission_denied',
        message: 'This API key may not use test/model. It is limited to: test/*, and its member to: *, -test/model',
      },
    },
  });

  // What a change does not name stays, and the last one takes the row with it.
  const path = `/members/${encodeURIComponent(people.member.account)}`;
  await call(people.admin.key, 'PATCH', path, { budgets: [{ limit: 5 }] }, account);
  expect((await chat(key!)).status).toBe(403);
  expect(await change(null)).toMatchObject({ body: { data: { allowed_services: null, budgets: [{ limit: 5 }] } } });
  expect((await chat(key!)).status).toBe(200);
  await change(['other'], 'member', { budgets: [] });
  expect((await chat(key!)).status).toBe(403);

  expect(await change(['-other'])).toMatchObject({
    status: 400,
    body: { error: { message: 'allowed_services takes away without giving anything. Add "*" for everything else' } },
  });
  // An admin does not lift what holds for himself.
  expect((await change(null, 'admin')).status).toBe(403);
});
