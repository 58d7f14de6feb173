import { expect, test } from 'vitest';
import { startSpine } from '../../../support/spine.ts';
import { openBrowser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

const spine = spineOfFile(() => ({ mode: 'development' }));

const SIGN_IN = { development: true };

test('a browser of this machine signs in as the local developer, who makes keys', async () => {
  const browser = openBrowser(spine.origin);
  const ways = (await browser.ask('GET', '/api/v1/auth/session')).body['ways'];
  expect(ways).toContain('development');
  const { status, body } = await browser.ask('POST', '/api/v1/auth/session', SIGN_IN);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    account: 'tollgate:local:dev',
    signed_in_by: 'development',
    rights: 'full',
    step_up: null,
  });
  const made = await browser.ask('POST', '/api/v1/keys', { label: 'mine' });
  expect([made.status, made.body.key.slice(0, 11)]).toEqual([201, 'svc-sk-dev-']);
});

test('a key of play money makes keys of play money, also for an organisation', async () => {
  const headers = { authorization: `Bearer ${spine.key}` };
  const made = await spine.app.server.inject({
    method: 'POST',
    url: '/api/v1/organisations',
    headers,
    payload: { label: 'x' },
  });
  const { account } = made.json<{ data: { account: string } }>().data;
  const key = await spine.app.server.inject({
    method: 'POST',
    url: '/api/v1/keys',
    headers: { ...headers, 'x-tollgate-account': account },
    payload: {},
  });
  expect([key.statusCode, key.json<{ key: string }>().key.slice(0, 11)]).toEqual([201, 'svc-sk-dev-']);
});

test.each([
  ['the name of a stranger that leads here', { host: 'rebound.example' }],
  ['a name of the network', { host: '192.168.1.5:8402' }],
  ['a proxy that says nothing', { origin: 'https://gate.example' }],
  ['a proxy that says so', { 'x-forwarded-for': '203.0.113.7' }],
  ['a proxy that says so in another way', { forwarded: 'for=203.0.113.7' }],
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ['a form', { 'x-tollgate-web': undefined }],
])('%s does not sign in', async (_who, headers) => {
  const browser = openBrowser(spine.origin);
  const { status } = await browser.ask('POST', '/api/v1/auth/session', SIGN_IN, headers);
  expect([status, browser.cookie]).toEqual([403, null]);
  if ('sec-fetch-site' in headers || 'x-tollgate-web' in headers) return;
  expect((await browser.ask('GET', '/api/v1/auth/session', undefined, headers)).body['ways']).not.toContain(
    'development',
  );
});

test('a session of the local developer opens nothing once the gateway is in production', async () => {
  const browser = openBrowser(spine.origin);
  await browser.ask('POST', '/api/v1/auth/session', SIGN_IN);
  const [row] = await spine.app.database.query({
    name: 'test/session-of-developer',
    text: "SELECT * FROM web_sessions WHERE signed_in_by = 'development' LIMIT 1",
  });
  const production = await startSpine();
  try {
    const fields = ['id', 'account', 'signed_in_by', 'client', 'created_at', 'seen_at', 'expires_at'];
    await production.app.database.query(
      {
        name: 'test/copy-session',
        text: `INSERT INTO web_sessions (${fields.join(', ')}) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
      },
      fields.map((field) => row![field]!),
    );
    const there = openBrowser(production.origin);
    there.cookie = browser.cookie;
    expect((await there.ask('GET', '/api/v1/keys')).status).toBe(401);
  } finally {
    await production.stop();
  }
});
