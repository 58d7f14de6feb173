import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { A_BUDGET, createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, register, registerRaw, type RawClient } from './support/raw-client.ts';

// Attacks on the sign-in of programs, from the documents of OAuth (RFC 6819, RFC 9700, the authorization of MCP). Each
// has a name, and ends with the assertion that nothing was won. Files beside this one have more of some kinds.

let spine: Spine;
let person: Person;
let client: RawClient;
let thief: RawClient;
/** A service of this machine that no stranger may reach through the gateway. */
let inside: Server;
let reached = 0;
let insideUrl: string;
let ahead = 0;
beforeAll(async () => {
  inside = createServer((_request, response) => {
    reached += 1;
    response.end('{}');
  });
  inside.listen(0, '127.0.0.1');
  await once(inside, 'listening');
  insideUrl = `http://127.0.0.1:${(inside.address() as AddressInfo).port}`;
  spine = await startSpine({
    mode: 'development',
    now: () => Date.now() + ahead,
    toml: '[limits]\nanonymous_requests_per_minute = 10000\n[sign_in]\nfailures_per_minute = 10000\n[webhooks]\nallow_private = false\n',
  });
  person = createPerson(spine.origin, spine.key);
  [client, thief] = await Promise.all([
    registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` }),
    registerRaw(spine.origin, { client_name: 'Thief', resource: `${spine.origin}/api/v1` }),
  ]);
});
afterAll(async () => {
  await spine.stop();
  inside.close();
});

const code = async (of = client) => person.allow(await person.open(of.authorizeUrl()));
const statusOf = async (token: string, path = '/api/v1/key', headers: Readonly<Record<string, string>> = {}) =>
  (await fetch(spine.origin + path, { headers: { authorization: `Bearer ${token}`, ...headers } })).status;
const begin = (changes: Readonly<Record<string, string | undefined>> = {}, more = '') =>
  fetch(client.authorizeUrl(changes) + more, { redirect: 'manual' });
/** The registered address alone gets answers; anything else is shown to the person. */
async function goesNowhere(response: Response): Promise<void> {
  const location = response.headers.get('location');
  if (location !== null) {
    const { origin, pathname } = new URL(location, spine.origin);
    expect(origin + pathname).toBe(RAW_CALLBACK);
    expect(new URL(location).searchParams.get('code')).toBeNull();
    return;
  }
  expect([response.status, response.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
}
const registration = (metadata: object) =>
  fetch(`${spine.origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [RAW_CALLBACK], ...metadata }),
  });

const CALLBACK_TRICKS = [
  RAW_CALLBACK.replace('/callback', '/callback/../evil'),
  RAW_CALLBACK.replace('/callback', '/callback%2f..%2fevil'),
  RAW_CALLBACK.replace('/callback', '/callback;evil'),
  RAW_CALLBACK.replace('/callback', '\\@evil.example/callback'),
  RAW_CALLBACK.replace('127.0.0.1:7878', '127.0.0.1:7878@evil.example'),
  RAW_CALLBACK.replace('127.0.0.1', '127.0.0.1.evil.example'),
  RAW_CALLBACK.replace('127.0.0.1', '[::1]'),
  RAW_CALLBACK.replace('127.0.0.1', '0.0.0.0'),
  RAW_CALLBACK.replace('http:', 'https:'),
  RAW_CALLBACK.replace('http:', 'HTTP:'),
  `${RAW_CALLBACK}#evil`,
  `${RAW_CALLBACK}\n`,
  '//evil.example/callback',
  '/callback',
  'data:text/html,evil',
];

const ATTACKS: Readonly<Record<string, () => Promise<void>>> = {
  'mix-up: the client names another issuer': async () => {
    const answer = await person.allow(await person.open(`${client.authorizeUrl()}&iss=https%3A%2F%2Fevil.example`));
    expect(answer.searchParams.getAll('iss')).toEqual([spine.origin]);
  },
  'mix-up: an error hides who answers': async () => {
    const answer = new URL((await begin({ response_type: 'token' })).headers.get('location')!);
    expect(new URLSearchParams(answer.hash.slice(1) || answer.search).get('iss')).toBe(spine.origin);
  },

  ...Object.fromEntries(
    CALLBACK_TRICKS.map((uri) => [
      `redirect: ${JSON.stringify(uri)}`,
      async () => goesNowhere(await begin({ redirect_uri: uri })),
    ]),
  ),
  'redirect: two addresses, one of them registered': async () => {
    await goesNowhere(await begin({}, '&redirect_uri=https%3A%2F%2Fevil.example%2F'));
    await goesNowhere(await begin({ redirect_uri: 'https://evil.example/' }, `&redirect_uri=${RAW_CALLBACK}`));
  },
  'redirect: two clients in one request': async () => goesNowhere(await begin({}, `&client_id=${thief.id}`)),
  'redirect: the answer as a form, a message or an unknown way': async () => {
    for (const mode of ['web_message', 'form_post.jwt', 'x']) await goesNowhere(await begin({ response_mode: mode }));
  },
  'redirect: markup in the state of an answer as a form': async () => {
    const state = '"><script>alert(1)</script>';
    const response = await begin({ response_mode: 'form_post', response_type: 'token', state });
    expect(await response.text()).not.toContain('<script>alert(1)');
  },
  'redirect: a program registers an address that runs code or leaks': async () => {
    const wrong = ['javascript:alert(1)', 'data:text/html,x', 'http://evil.example/', 'https://evil.example/#x', '//x'];
    for (const uri of wrong) expect([uri, (await registration({ redirect_uris: [uri] })).status]).toEqual([uri, 400]);
  },

  'code injection: the code of another sign-in, with the verifier of the own one': async () => {
    const victims = await code();
    expect(await thief.redeem(victims)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  },
  'code injection: PKCE is left out at the end': async () => {
    expect(await client.redeem(await code(), { code_verifier: undefined })).toMatchObject({ status: 400 });
  },
  'code injection: PKCE is left out at the beginning, and a verifier sent at the end': async () => {
    await goesNowhere(await begin({ code_challenge: undefined, code_challenge_method: undefined }));
  },
  'code injection: the challenge itself as the verifier': async () => {
    const challenge = new URL(client.authorizeUrl()).searchParams.get('code_challenge')!;
    expect(await client.redeem(await code(), { code_verifier: challenge })).toMatchObject({ status: 400 });
  },
  'code injection: another browser goes on with a sign-in that was agreed to': async () => {
    const page = await person.open(client.authorizeUrl());
    const agreed = await person.send('POST', page, A_BUDGET, { authorization: `Bearer ${spine.key}` });
    const { redirect_to: next } = (await agreed.json()) as { readonly redirect_to: string };
    const stolen = await fetch(new URL(next, spine.origin), { redirect: 'manual' });
    await goesNowhere(stolen);
    expect((await client.redeem(await person.open(new URL(next, spine.origin).href))).status).toBe(200);
  },

  'confused deputy: a token of a tool service at the models and at another service': async () => {
    const tool = await registerRaw(spine.origin, { resource: `${spine.origin}/mcp/acme/tools` });
    const { access_token: token } = await tool.signIn(person);
    expect(await statusOf(token)).toBe(401);
    expect(await statusOf(token, '/mcp/other/tools')).toBe(401);
  },
  'confused deputy: a program with a token lets another one sign in, or makes a key': async () => {
    const { access_token: token } = await client.signIn(person);
    const page = await person.open(thief.authorizeUrl());
    const own = { authorization: `Bearer ${token}` };
    expect((await person.send('POST', page, A_BUDGET, own)).status).toBeGreaterThanOrEqual(401);
    expect((await spine.post('/keys', { label: 'more' }, own)).status).toBe(403);
  },
  'confused deputy: a consent for an account that is not the own one': async () => {
    const stranger = await spine.tenant(`stranger-${Date.now()}`, '0');
    const page = await person.open(client.authorizeUrl());
    const headers = { authorization: `Bearer ${stranger.key}`, 'x-tollgate-account': spine.account };
    expect((await person.send('POST', page, A_BUDGET, headers)).status).toBe(404);
  },

  'stolen refresh token: at another client': async () => {
    const { refresh_token: token } = await client.signIn(person);
    expect(await thief.refresh(token!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  },
  'stolen refresh token: after its owner has used it': async () => {
    const first = await client.signIn(person);
    const { body: second } = await client.refresh(first.refresh_token!);
    ahead += 60_000;
    expect((await client.refresh(first.refresh_token!)).status).toBe(400);
    // Nobody knows who the thief is, so both are out.
    expect(await statusOf(second.access_token)).toBe(401);
  },
  'stolen refresh token: as an access token, and the other way round': async () => {
    const { access_token: access, refresh_token: refresh } = await client.signIn(person);
    expect(await statusOf(refresh!)).toBe(401);
    expect((await client.refresh(access)).status).toBe(400);
  },
  'a program ends the sign-in of another one': async () => {
    const { access_token: token } = await client.signIn(person);
    await fetch(`${spine.origin}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token, client_id: thief.id }),
    });
    expect(await statusOf(token)).toBe(200);
  },
  'a token in the address of a request, where logs keep it': async () => {
    const { access_token: token } = await client.signIn(person);
    expect((await fetch(`${spine.url}/key?access_token=${token}`)).status).toBe(401);
  },

  'SSRF: the address of a document of a program': async () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '10.0.0.1', '0x7f000001', '2130706433'])
      await goesNowhere(await begin({ client_id: `https://${host}:${new URL(insideUrl).port}/client` }));
    await goesNowhere(await begin({ client_id: `${insideUrl}/client` }));
  },
  'SSRF: addresses in the metadata of a registration': async () => {
    const names = [
      'jwks_uri',
      'logo_uri',
      'sector_identifier_uri',
      'request_uris',
      'backchannel_logout_uri',
      'client_uri',
    ];
    for (const name of names) {
      const value = name.endsWith('s') ? [`${insideUrl}/x`] : `${insideUrl}/x`;
      await registration({ [name]: value, token_endpoint_auth_method: 'private_key_jwt', subject_type: 'pairwise' });
    }
  },
  'SSRF: addresses in an authorization request': async () => {
    for (const name of ['request_uri', 'registration', 'client_metadata_uri', 'logo_uri'])
      await begin({ [name]: `${insideUrl}/x` });
  },

  'a lying name: markup, directions of text and a length that hides the rest': async () => {
    const name = `\u202eClaude\u0000 by Anthropic\n(verified) <img src=x onerror=alert(1)>${'!'.repeat(500)}`;
    const liar = await registerRaw(spine.origin, { client_name: name });
    const { data } = (await (await person.look(await person.open(liar.authorizeUrl()))).json()) as {
      readonly data: { readonly name: string; readonly document: string | null };
    };
    expect(data.name).not.toMatch(/[\p{C}\n]/u);
    expect(data.name.length).toBeLessThanOrEqual(64);
    expect(data.document).toBeNull();
  },
  'a lying name: a program takes the id of another one': async () => {
    const { client_id: id } = await register(spine.origin, { client_id: client.id });
    expect(id).not.toBe(client.id);
  },

  'clickjacking: the page of consent in a frame': async () => {
    const page = await person.open(client.authorizeUrl());
    const { headers } = await fetch(page, { headers: { accept: 'text/html' } });
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  },
  'CSRF: another site says yes or no': async () => {
    const page = await person.open(client.authorizeUrl());
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'x-tollgate-web': '' },
    ])
      for (const [method, body] of [
        ['POST', A_BUDGET],
        ['DELETE', undefined],
      ] as const) {
        const own = { authorization: `Bearer ${spine.key}`, ...headers };
        expect((await person.send(method, page, body, own as Record<string, string>)).status).toBe(403);
      }
  },
  'CSRF: a form of another site posts an authorization request': async () => {
    const body = new URL(client.authorizeUrl()).searchParams;
    expect((await fetch(`${spine.origin}/oauth/authorize`, { method: 'POST', body })).status).toBe(405);
  },

  'a token for another gateway, by a resource that only looks like this one': async () => {
    for (const resource of [
      `${spine.origin}.evil.example/api/v1`,
      `${spine.origin}@evil.example`,
      `${spine.origin}/api/v1/../..`,
      `${spine.origin}/mcp/acme/tools/../../../`,
      `${spine.origin}/mcp/acme/%2e%2e`,
      `${spine.origin}\\mcp`,
    ]) {
      const answer = new URL((await begin({ resource })).headers.get('location')!, 'http://own.invalid');
      expect([resource, answer.searchParams.get('error')]).toEqual([resource, 'invalid_target']);
    }
  },
  'a token for several resources at once': async () => {
    const wide = await person.open(`${client.authorizeUrl()}&resource=${encodeURIComponent(`${spine.origin}/mcp`)}`);
    const answer = wide.pathname.startsWith('/authorize/') ? await person.allow(wide) : wide;
    const tokens = (await client.redeem(answer, { resource: `${spine.origin}/mcp` })).body;
    if (tokens.access_token !== undefined) expect(await statusOf(tokens.access_token)).toBe(401);
  },
  'growth at refresh: a larger scope': async () => {
    const { refresh_token: token } = await client.signIn(person);
    expect((await client.refresh(token!, { scope: 'call admin' })).status).toBe(400);
    expect((await client.refresh(token!)).status).toBe(200);
  },
  'growth at refresh: another resource': async () => {
    for (const resource of [spine.origin, `${spine.origin}/mcp`, `${spine.origin}/api/v1/..`]) {
      const { refresh_token: token } = await client.signIn(person);
      expect(await client.refresh(token!, { resource })).toMatchObject({
        status: 400,
        body: { error: 'invalid_target' },
      });
    }
  },
  'growth at refresh: after the person has taken services away': async () => {
    const { refresh_token: token } = await client.signIn(person);
    const { data } = (await (await spine.get('/keys')).json()) as {
      readonly data: readonly { readonly hash: string }[];
    };
    const changed = await fetch(`${spine.url}/keys/${data.at(-1)!.hash}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ allowed_services: ['nothing/here'] }),
    });
    expect(changed.status).toBe(200);
    const { access_token: later } = (await client.refresh(token!)).body;
    const answer = await spine.post(
      '/chat/completions',
      { model: 'test/model', messages: [{ role: 'user', content: 'hello' }] },
      { authorization: `Bearer ${later}` },
    );
    expect(answer.status).toBe(403);
  },
};

test.each(Object.entries(ATTACKS))('%s', async (_name, attack) => {
  const before = reached;
  await attack();
  expect(reached).toBe(before);
});

test('after all of them the books are right', async () => {
  expect(await spine.faults()).toEqual([]);
});
