import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, startSpine, type Spine } from '../../../support/spine.ts';

// Notes of the operator's people about an account, and the calls of an account that failed.

let spine: Spine;
let key: string;
beforeAll(async () => {
  spine = await startSpine();
  ({ key } = await spine.tenant('acme', '5'));
  await admin('POST', '/accounts', { name: 'acme' });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const ACME = '/accounts/tollgate%3Alocal%3Aacme';
const admin = async (method: string, path: string, body?: object, adminKey = spine.adminKey) => {
  const answer = await fetch(`${spine.origin}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const { data, key: made = '' } = (await answer.json()) as { readonly data: unknown; readonly key?: string };
  return { status: answer.status, data, made };
};

test('a note has its author and is seen by operators alone', async () => {
  const { made } = await admin('POST', '/admin-keys', { label: 'support', roles: ['credit'] });
  const { status } = await admin('POST', `${ACME}/notes`, { text: '  asked for a higher rate ' }, made);
  expect(status).toBe(201);
  await admin('POST', `${ACME}/notes`, { text: 'raised' });
  const notes = (await admin('GET', `${ACME}/notes`)).data as readonly { id: string; by: string; text: string }[];
  expect(Object.fromEntries(notes.map(({ by, text }) => [by, text]))).toEqual({
    root: 'raised',
    support: 'asked for a higher rate',
  });
  expect((await admin('GET', `${ACME}/notes`, undefined, key)).status).toBe(401);
  expect((await admin('POST', `${ACME}/notes`, { text: ' ' })).status).toBe(400);
  expect((await admin('DELETE', `${ACME}/notes/${notes[0]!.id}`)).status).toBe(200);
  expect((await admin('DELETE', `${ACME}/notes/${notes[0]!.id}`)).status).toBe(404);
  expect((await admin('GET', `${ACME}/notes`)).data).toHaveLength(1);
  expect((await admin('GET', '/accounts/tollgate%3Alocal%3Anobody/notes')).status).toBe(404);
  // The log of changes is for ever, and a note can be deleted.
  const acts = (await admin('GET', '/audit-log')).data as readonly { path: string; body: unknown }[];
  const ofNotes = acts.filter(({ path }) => path.includes('/notes'));
  expect(ofNotes.length).toBeGreaterThanOrEqual(4);
  expect(ofNotes.filter(({ body }) => body !== null)).toEqual([]);
});

test('calls can be listed by whether they failed, whatever their state is', async () => {
  for (const text of ['hello', '!status:500'])
    await (await spine.post('/chat/completions', ask(text), { authorization: `Bearer ${key}` })).text();
  await spine.quiet();
  const failedOf = async (query: string) =>
    ((await admin('GET', `${ACME}/calls${query}`)).data as readonly { readonly failed: boolean }[]).map(
      ({ failed }) => failed,
    );
  expect(await failedOf('?failed=true')).toEqual([true]);
  expect(await failedOf('?failed=false')).toEqual([false]);
  const all = await failedOf('');
  expect([all.length, new Set(all).size]).toEqual([2, 2]);
});
