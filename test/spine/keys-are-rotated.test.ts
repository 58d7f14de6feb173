import { afterEach, expect, test } from 'vitest';
import { hashKey } from '../../src/gateway/auth/api-key.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// A key gets another text, and stays the same key in everything else.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
interface KeyView {
  readonly hash: string;
  readonly usage: number;
  readonly limit_remaining: number | null;
}
interface NewKey {
  readonly key: string;
  readonly data: KeyView;
}
const make = async (owner: string, body: object): Promise<NewKey> =>
  (await (await spine.post('/keys', body, bearer(owner))).json()) as NewKey;
const rotate = (owner: string, hash: string, body: object = {}) =>
  spine.post(`/keys/${hash}/rotate`, body, bearer(owner));
const rotated = async (owner: string, hash: string, body: object = {}): Promise<string> => {
  const response = await rotate(owner, hash, body);
  expect(response.status).toBe(201);
  return ((await response.json()) as NewKey).key;
};
const callWith = async (key: string): Promise<number> =>
  (await spine.post('/chat/completions', ask('hello'), bearer(key))).status;

test('a key has another text, and its limit, spending, name and calls stay', async () => {
  const { key: owner } = await spine.tenant('rotates', '1');
  const { key: before, data } = await make(owner, { name: 'robot', limit: 0.5, tags: { team: 'blue' } });
  expect(await callWith(before)).toBe(200);
  const shown = async () =>
    ((await (await spine.get(`/keys/${data.hash}`, bearer(owner))).json()) as { data: KeyView }).data;
  await expect.poll(async () => (await shown()).usage).toBeGreaterThan(0);
  const asBefore = await shown();

  const response = await rotate(owner, data.hash);
  expect(response.status).toBe(201);
  const { key: after, data: answer } = (await response.json()) as NewKey;
  expect(answer).toEqual(asBefore);
  expect(after).not.toBe(before);
  expect(await shown()).toEqual(asBefore);
  // The text before is refused at once, and the new one is the same key.
  expect(await callWith(before)).toBe(401);
  expect(await callWith(after)).toBe(200);
  await expect.poll(async () => (await shown()).usage).toBe(asBefore.usage * 2);
  const { data: inUse } = (await (await spine.get('/key', bearer(after))).json()) as { data: KeyView };
  expect(inUse).toMatchObject({ hash: data.hash, name: 'robot', limit: 0.5, tags: { team: 'blue' } });
  const { data: calls } = (await (await spine.get(`/generations?key=${data.hash}`, bearer(owner))).json()) as {
    data: readonly { readonly tags: object }[];
  };
  expect(calls).toHaveLength(2);
  // Nobody calls with the hash of a text instead of the text.
  expect(await callWith(hashKey(after))).toBe(401);
});

test('the text before works for its time, and the one before that no longer', async () => {
  const { key: owner } = await spine.tenant('rotates-slowly', '1');
  const { key: first, data } = await make(owner, {});
  const second = await rotated(owner, data.hash, { grace_seconds: 3600 });
  expect([await callWith(first), await callWith(second)]).toEqual([200, 200]);
  const third = await rotated(owner, data.hash, { grace_seconds: 1 });
  expect([await callWith(first), await callWith(third)]).toEqual([401, 200]);
  await expect.poll(() => callWith(second), { timeout: 20_000 }).toBe(401);
  const fourth = await rotated(owner, data.hash);
  expect([await callWith(first), await callWith(second), await callWith(third)]).toEqual([401, 401, 401]);
  expect(await callWith(fourth)).toBe(200);
  // Disabled and deleted, it is refused with every text.
  const change = (method: string, body?: object) =>
    fetch(`${spine.url}/keys/${data.hash}`, {
      method,
      headers: { ...bearer(owner), ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  expect((await change('PATCH', { disabled: true })).status).toBe(200);
  expect(await callWith(fourth)).toBe(401);
  expect((await change('PATCH', { disabled: false })).status).toBe(200);
  expect(await callWith(fourth)).toBe(200);
  expect((await change('DELETE')).status).toBe(200);
  expect([await callWith(first), await callWith(fourth)]).toEqual([401, 401]);
});

test('browsers that signed in with the key are signed out', async () => {
  const { key: owner } = await spine.tenant('rotates-in-a-browser', '1');
  const { key: before, data } = await make(owner, {});
  const signIn = async (text: string): Promise<string> => {
    const response = await fetch(`${spine.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
      body: JSON.stringify({ api_key: text }),
    });
    expect(response.status).toBe(200);
    return response.headers.get('set-cookie')!.split(';')[0]!;
  };
  const cookie = await signIn(before);
  const statusIn = async () =>
    (await fetch(`${spine.url}/credits`, { headers: { cookie, 'x-tollgate-web': '1' } })).status;
  expect(await statusIn()).toBe(200);
  const after = await rotated(owner, data.hash);
  await expect.poll(statusIn, { timeout: 20_000 }).toBe(401);
  expect(await signIn(after)).toContain('=');
});

test('who may not make keys rotates none, and each refusal says why', async () => {
  const { key: owner } = await spine.tenant('rotates-not', '1');
  const { key: stranger } = await spine.tenant('rotates-others', '1');
  const { key: limited, data } = await make(owner, { limit: 1 });
  expect((await rotate(limited, data.hash)).status).toBe(403);
  expect((await rotate(stranger, data.hash)).status).toBe(404);
  expect((await rotate(owner, 'f'.repeat(64))).status).toBe(404);
  for (const grace_seconds of [-1, 1.5, 7 * 24 * 3600 + 1, '60']) {
    const response = await rotate(owner, data.hash, { grace_seconds });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('grace_seconds');
  }
  expect(await callWith(limited)).toBe(200);
});

test('a key that was deleted keeps its name in figures and in the file of calls', async () => {
  const { key: owner } = await spine.tenant('names-stay', '1');
  const { key, data } = await make(owner, { name: 'before' });
  expect(await callWith(key)).toBe(200);
  await fetch(`${spine.url}/keys/${data.hash}`, {
    method: 'PATCH',
    headers: { ...bearer(owner), 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'night robot' }),
  });
  const removed = await fetch(`${spine.url}/keys/${data.hash}`, { method: 'DELETE', headers: bearer(owner) });
  expect(removed.status).toBe(200);
  await expect
    .poll(async () => (await spine.get('/analytics/own?group_by=key', bearer(owner))).text(), { timeout: 20_000 })
    .toContain('night robot');
  expect(await (await spine.get('/generations?format=csv', bearer(owner))).text()).toContain('night robot');
});
