import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { newDataDirectory } from '../../support/data-directory.ts';
import { createPerson, type Person } from './support/person.ts';
import { registerRaw, type RawClient } from './support/raw-client.ts';

const TOML = '[limits]\nanonymous_requests_per_minute = 1000\n';

let spine: Spine;
let person: Person;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', toml: TOML });
  person = createPerson(spine.origin, spine.key);
});
afterAll(() => spine.stop());

const API = '/api/v1';
const statusOf = async (token: string, origin = spine.origin): Promise<number> =>
  (await fetch(`${origin}/api/v1/key`, { headers: { authorization: `Bearer ${token}` } })).status;
const newClient = (origin = spine.origin): Promise<RawClient> => registerRaw(origin, { resource: origin + API });

test('a refresh gives new tokens, and the old access token is good until its end', async () => {
  const client = await newClient();
  const first = await client.signIn(person);
  const { status, body: second } = await client.refresh(first.refresh_token!);
  expect(status).toBe(200);
  expect(second.refresh_token).not.toBe(first.refresh_token);
  expect(await statusOf(first.access_token)).toBe(200);
  expect(await statusOf(second.access_token)).toBe(200);
});

test.each(['access_token', 'refresh_token'] as const)(
  'a client that gives its %s back is signed out',
  async (which) => {
    const client = await newClient();
    const tokens = await client.signIn(person);
    const response = await fetch(`${spine.origin}/oauth/revoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ client_id: client.id, token: tokens[which]! }).toString(),
    });
    expect(response.status).toBe(200);
    expect(await statusOf(tokens.access_token)).toBe(401);
    expect(await client.refresh(tokens.refresh_token!)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
  },
);

test('a client cannot give back what another client has', async () => {
  const [client, other] = [await newClient(), await newClient()];
  const tokens = await client.signIn(person);
  await fetch(`${spine.origin}/oauth/revoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ client_id: other.id, token: tokens.refresh_token! }).toString(),
  });
  expect(await statusOf(tokens.access_token)).toBe(200);
  expect(await other.refresh(tokens.refresh_token!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
});

/** The key of the last grant. */
async function lastGrant(): Promise<string> {
  const { data } = (await (await spine.get('/keys')).json()) as {
    readonly data: readonly { readonly hash: string; readonly client: string | null }[];
  };
  return data.findLast(({ client }) => client !== null)!.hash;
}
const change = (hash: string, method: string, body?: object) =>
  fetch(`${spine.url}/keys/${hash}`, {
    method,
    headers: { authorization: `Bearer ${spine.key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });

test('its owner deletes the key of a grant, and the program is signed out at once', async () => {
  const client = await newClient();
  const tokens = await client.signIn(person);
  expect(await statusOf(tokens.access_token)).toBe(200);
  expect((await change(await lastGrant(), 'DELETE')).status).toBe(200);
  expect(await statusOf(tokens.access_token)).toBe(401);
  expect(await client.refresh(tokens.refresh_token!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
});

test('its owner stops the key and lets it work again: so does the program', async () => {
  const client = await newClient();
  const tokens = await client.signIn(person);
  const hash = await lastGrant();
  await change(hash, 'PATCH', { disabled: true });
  expect(await statusOf(tokens.access_token)).toBe(401);
  expect((await client.refresh(tokens.refresh_token!)).status).toBe(400);
  await change(hash, 'PATCH', { disabled: false });
  expect(await statusOf(tokens.access_token)).toBe(200);
  expect((await client.refresh(tokens.refresh_token!)).status).toBe(200);
});

test('a program stays without full rights when its owner takes all limits away', async () => {
  const client = await newClient();
  const { access_token: token } = await client.signIn(person);
  const unlimited = { limit: null, limit_reset: null, expires_at: null, allowed_services: null };
  expect((await change(await lastGrant(), 'PATCH', unlimited)).status).toBe(200);
  const response = await fetch(`${spine.url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{}',
  });
  expect(response.status).toBe(403);
});

test('a grant ends at its end, and its tokens with it', async () => {
  const client = await newClient();
  const soon = new Date(Date.now() + 2_000).toISOString();
  const tokens = await client.signIn(person, { limits: { limit: 1, expires_at: soon } });
  await expect.poll(() => statusOf(tokens.access_token), { timeout: 20_000 }).toBe(401);
  expect(await client.refresh(tokens.refresh_token!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
});

test('a budget that is used up refuses calls, and the books are right', async () => {
  const client = await newClient();
  const { access_token: token } = await client.signIn(person, {
    limits: { limit: 0.00001, expires_at: new Date(Date.now() + 86_400_000).toISOString() },
  });
  const response = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/model', max_tokens: 1_000, messages: [{ role: 'user', content: 'hello' }] }),
  });
  expect([response.status, await response.text()]).toEqual([402, expect.stringContaining('budget')]);
  expect(await spine.faults()).toEqual([]);
});

test('clients, tokens and a sign-in under way outlive a restart', async () => {
  const dataDir = newDataDirectory();
  const before = await startSpine({ mode: 'development', toml: TOML, dataDir });
  const port = Number(new URL(before.origin).port);
  const client = await newClient(before.origin);
  const one = createPerson(before.origin, before.key);
  const tokens = await client.signIn(one);
  const page = await one.open(client.authorizeUrl());
  await before.stop();

  const after = await startSpine({ mode: 'development', toml: TOML, dataDir, port });
  try {
    expect(await statusOf(tokens.access_token, after.origin)).toBe(200);
    expect((await client.refresh(tokens.refresh_token!)).status).toBe(200);
    expect((await client.redeem(await one.allow(page))).status).toBe(200);
    expect(await after.faults()).toEqual([]);
  } finally {
    await after.stop();
  }
});
