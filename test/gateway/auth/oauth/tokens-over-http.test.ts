import type { IncomingMessage } from 'node:http';
import * as sdkV2 from '@modelcontextprotocol/client';
import * as sdkV1 from '@modelcontextprotocol/sdk/client/auth.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayError } from '#errors';
import { toHttpError, createServer } from '#http';
import { accountTotals, audit, createLedger, createPriceBook, createRefunds } from '#billing/compose';
import { findTransfer } from '#billing';
import { createRateLimiter, createRatePolicies, limitedAs, type Admission } from '#limits';
import {
  createAuthenticator,
  createIdentity,
  createKeyStore,
  createNonces,
  createSignIn,
  requireAdmission,
  createKey,
} from '#auth';
import { createConsumerStore, createLimitsStore, createMemberStore, createNoteStore } from '#accounts';
import { localAccount } from '#accounts/names';
import { accountRoutes, adminRoutes } from '#pages';
import { createAdminGuard } from '../../../../src/gateway/auth/administrators/admin-gate.ts';
import { createAdminLog } from '#auth/keys';
import { createAdmission, createProviderList } from '../../../../src/gateway/network/tunnel/admission.ts';
import { TUNNEL_PROTOCOL } from '../../../../src/gateway/network/tunnel-wire.ts';
import { sendRaw } from '../../../support/raw-http.ts';
import { LIMITS, NO_CALLS } from '../../../server/accounts/gateway-world.ts';
import { openTestDatabase } from '../../test-database.ts';
import { DOMAIN, headerFor, solanaWallet } from '../siwx/wallets.ts';
import { issuerKey, mint } from './issuer.ts';
import { openTokens, PUBLIC_URL, START, type TokenWorldOptions } from './token-world.ts';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly error: { readonly type: string; readonly message: string };
    readonly data: { readonly id: string; readonly balance_micro_usdc: number };
    readonly [other: string]: unknown;
  };
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const METADATA = `${PUBLIC_URL}${WELL_KNOWN}`;
const INVALID_KEY = { error: { message: 'Invalid API key', type: 'unauthorized', code: 401, param: null } };

/** The account endpoints, the administration, and an MCP endpoint that answers with its caller, on a real socket. */
async function world(options: TokenWorldOptions & { readonly enabled?: boolean } = {}) {
  const oauth = options.enabled === false ? { oauth: { issuer: null } } : {};
  const tokens = await openTokens({ domains: [DOMAIN], ...options, ...oauth });
  const { now, attempts, resource, config } = tokens;
  tokens.clock.now = START;
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const store = createKeyStore(database, { now });
  const signIn = await createSignIn({ ...config.signIn, chains: [], attempts, now, elapsed: now });
  const secret = createIdentity({ seed: '0'.repeat(64) }).secret('sign-in nonces');
  const nonces = createNonces({ secret, database, now });
  let seen = 0;
  const { accessTokens } = resource;
  const counted = accessTokens && {
    known: (token: string, path: string | null) => ((seen += 1), accessTokens.known(token, path)),
    verify: (token: string, path: string | null, address: string) => (
      (seen += 1),
      accessTokens.verify(token, path, address)
    ),
  };
  const authenticator = createAuthenticator({
    keys: store,
    limits: createLimitsStore(database, { now }),
    signIn,
    accessTokens: counted,
    attempts,
    acceptDevelopmentKeys: true,
    now,
  });
  const limiter = createRateLimiter({ redis: null, now });
  const rates = createRatePolicies({ ...LIMITS, requestsPerMinute: 10_000 });
  const admit = async (
    headers: Parameters<typeof authenticator.authenticate>[0],
    address: string,
  ): Promise<Admission> => {
    const caller = await authenticator.authenticate(headers, address);
    return { caller, rate: await limiter.take(limitedAs(caller), rates.policyOf(caller), { requests: 1, tokens: 0 }) };
  };
  const server = createServer({ limits: LIMITS, onError: () => {} });
  const adminKey = createKey('admin').text;
  const records = {
    totals: (account: string) => accountTotals(database, account),
    refunds: createRefunds(database, ledger),
    prices: createPriceBook(database, now),
    refusals: { refusalsOf: () => [], since: 0 },
    limits: createLimitsStore(database, { now }),
  };
  await server.register(
    accountRoutes({
      members: { find: async () => null },
      countNewKey: async () => {},
      admit,
      keys: store,
      offers: () => true,
      nonces,
      ledger,
      ...records,
      usage: async () => new Map(),
      ...NO_CALLS,
      findTransfer: async () => null,
      movements: async () => [],
      tasks: { liveStatesOf: async () => new Map() },
      receipt: () => null,
      networks: [],
      now,
    }),
    { prefix: '/api/v1' },
  );
  await server.register(
    adminRoutes({
      keyRate: () => Infinity,
      seller: async () => null,
      offers: () => true,
      gate: async ({ headers }) => createAdminGuard(adminKey)(headers),
      networks: [],
      notes: createNoteStore(database, { now }),
      consumers: createConsumerStore(database, { now }),
      log: createAdminLog(database, { now }),
      keys: store,
      members: createMemberStore(database, { keys: store, limits: records.limits, now }),
      ledger,
      ...records,
      usage: async () => new Map(),
      findTransfer: (id) => findTransfer(database, id),
      ...NO_CALLS,
      now,
    }),
    { prefix: '/admin/v1' },
  );
  await server.register(resource.routes);
  await server.register(async (app) => {
    const admissionOf = requireAdmission(app, admit);
    app.setErrorHandler((error, request, reply) => {
      const known = error instanceof GatewayError ? error : new GatewayError('internal', String(error));
      const challenge = resource.challengeFor(request, known);
      const { status, headers, body } = toHttpError(known);
      void reply
        .code(status)
        .headers({ ...headers, ...(challenge === null ? {} : { 'www-authenticate': challenge }) })
        .send(body);
    });
    for (const path of ['/mcp', '/mcp/*', '/api/v1/mcp/*', '/api/v1/other']) {
      app.post(path, async (request) => {
        const { account, key, wallet } = admissionOf(request).caller;
        return { account, key: key?.hash ?? null, wallet };
      });
    }
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());

  const call = async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body?: unknown,
  ): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] };
  };
  return {
    ...tokens,
    url,
    keys: store,
    adminKey,
    call,
    /** How often the token code was entered. */
    seen: () => seen,
    audited: () => audit(database, { now }),
  };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const challengeOf = ({ headers }: Answer) => headers.get('www-authenticate');

describe('a token', () => {
  it('calls MCP and the API, and has an account that the operator can credit', async () => {
    const { call, token, adminKey, audited } = await world();
    const text = token({ sub: 'auth0|5f7c', aud: PUBLIC_URL });
    const { status, body } = await call('POST', '/mcp/weather', bearer(text));
    expect({ status, body }).toEqual({
      status: 200,
      body: { account: expect.stringMatching(/^oauth:.*:auth0%7C5f7c$/), key: null, wallet: null },
    });
    const account = body['account'] as string;

    const before = await call('GET', '/api/v1/session/balance', bearer(text));
    expect(before.body).toMatchObject({ caip_account_id: account, balance_micro_usdc: 0 });
    const credit = { amount_usd: 10, reference: 'r-1' };
    const credited = await call(
      'POST',
      `/admin/v1/accounts/${encodeURIComponent(account)}/credit`,
      bearer(adminKey),
      credit,
    );
    expect(credited).toMatchObject({
      status: 200,
      body: { data: { account: { id: account, caip_account_id: account, balance_micro_usdc: 10_000_000 } } },
    });
    expect((await call('GET', '/api/v1/session/balance', bearer(text))).body).toMatchObject({
      balance_micro_usdc: 10_000_000,
    });
    // Another subject has another account.
    expect(
      (await call('GET', '/api/v1/session/balance', bearer(token({ sub: 'bob', aud: PUBLIC_URL })))).body,
    ).toMatchObject({
      balance_micro_usdc: 0,
    });
    expect(await audited()).toMatchObject({ ok: true });
  });

  it('for one endpoint is refused at another one, and says for which it is', async () => {
    const { call, token } = await world();
    const text = token({ aud: [`${PUBLIC_URL}/mcp/acme/weather`, 'https://elsewhere.example'] });
    const message = `Invalid access token: it is only for ${PUBLIC_URL}/mcp/acme/weather: ask for a token for this address`;
    const refused = { status: 401, body: { error: { message } } };
    // The first time it is verified, and after that it is known.
    for (let n = 0; n < 2; n += 1) {
      const elsewhere = await call('POST', '/mcp/acme/maps', bearer(text));
      expect(elsewhere).toMatchObject(refused);
      expect(challengeOf(elsewhere)).toContain(`resource_metadata="${METADATA}/mcp/acme/maps"`);
      expect(await call('POST', '/mcp', bearer(text))).toMatchObject(refused);
      expect(await call('GET', '/api/v1/session/balance', bearer(text))).toMatchObject(refused);
      for (const path of ['/mcp/acme/weather', '/mcp/acme/weather?x=1', '/api/v1/mcp/acme/weather'])
        expect((await call('POST', path, bearer(text))).status).toBe(200);
    }
  });

  it('for one endpoint is accepted at all of them where the operator says so', async () => {
    const { call, token } = await world({ oauth: { sharedAudience: true } });
    const text = token({ aud: `${PUBLIC_URL}/mcp/acme/weather` });
    for (const path of ['/mcp/acme/maps', '/mcp', '/mcp/acme/weather'])
      expect((await call('POST', path, bearer(text))).status).toBe(200);
    expect((await call('GET', '/api/v1/session/balance', bearer(text))).status).toBe(200);
  });

  it('that is known good passes when others from its address fail too often', async () => {
    const { call, token, claims } = await world({ failuresPerMinute: 2 });
    expect((await call('POST', '/mcp', bearer(token()))).status).toBe(200);
    const forged = (n: number) => bearer(mint(issuerKey('first'), claims({ n })));
    for (const [n, status] of [401, 401, 429, 429].entries())
      expect((await call('POST', '/mcp', forged(n))).status).toBe(status);
    expect((await call('POST', '/mcp', bearer(token()))).status).toBe(200);
    expect((await call('POST', '/mcp', bearer(token({ sub: 'bob' })))).status).toBe(429);
  });

  it('does not let a provider dial in', async () => {
    const { tokens, token } = await openTokens();
    const admit = createAdmission({
      authenticate: (headers, address) =>
        tokens.verify(headers.authorization!.slice('Bearer '.length), '/mcp', address)!,
      identity: createIdentity({ seed: '0'.repeat(64) }),
      listed: createProviderList([]),
    });
    const headers = { ...bearer(token()), 'sec-websocket-protocol': TUNNEL_PROTOCOL };
    const dial = { headers, rawHeaders: Object.entries(headers).flat() } as unknown as IncomingMessage;
    await expect(admit(dial, '192.0.2.1')).rejects.toMatchObject({
      code: 'permission_denied',
      message: expect.stringContaining('cannot provide'),
    });
  });

  it('is taken with any case of the scheme, and beside a dummy in x-api-key', async () => {
    const { call, token } = await world();
    for (const headers of [
      { authorization: `bearer ${token()}` },
      { authorization: `BEARER   ${token()} ` },
      { authorization: `Bearer ${token()}`, 'x-api-key': 'dummy' },
    ])
      expect((await call('POST', '/mcp', headers)).status).toBe(200);
  });

  it('is not taken from x-api-key, a query or another scheme', async () => {
    const { call, token } = await world();
    expect(await call('POST', '/mcp', { 'x-api-key': token() })).toMatchObject({ status: 401, body: INVALID_KEY });
    expect((await call('POST', `/mcp?access_token=${token()}`)).status).toBe(401);
    expect((await call('POST', '/mcp', { authorization: `DPoP ${token()}` })).status).toBe(401);
  });

  it('twice is refused', async () => {
    const { url, token } = await world();
    const [one, other] = [`Authorization: Bearer ${token()}`, `authorization: Bearer ${token({ sub: 'bob' })}`];
    const answer = await sendRaw(
      url,
      `POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n${one}\r\n${other}\r\n\r\n`,
    );
    expect(answer.status).toBe(401);
    expect(answer.body).toContain('more than once');
  });

  it('cannot make, change or delete keys, nor show one', async () => {
    const { call, token, keys } = await world();
    const text = token({ aud: PUBLIC_URL });
    const { body } = await call('POST', '/mcp', bearer(text));
    const { record } = (await keys.create({ account: body['account'] as string, label: 'k', kind: 'live' }))!;
    const denied = { status: 403, body: { error: { type: 'permission_denied' } } };
    expect(await call('POST', '/api/v1/keys', bearer(text), { label: 'mine' })).toMatchObject(denied);
    expect(await call('PATCH', `/api/v1/keys/${record.hash}`, bearer(text), { disabled: true })).toMatchObject(denied);
    expect(await call('DELETE', `/api/v1/keys/${record.hash}`, bearer(text))).toMatchObject(denied);
    expect(await keys.list(record.account, { offset: 0, limit: 10 })).toHaveLength(1);
    expect((await call('GET', '/api/v1/key', bearer(text))).status).toBe(404);
    expect((await call('GET', '/api/v1/keys', bearer(text))).status).toBe(200);
  });

  it('opens no administration', async () => {
    const { call, token } = await world();
    expect((await call('GET', '/admin/v1/accounts', bearer(token()))).status).toBe(401);
  });

  it('that is wrong is told what is wrong with it, and what is no token is an invalid key', async () => {
    const { call, token } = await world();
    const expired = await call('POST', '/mcp', bearer(token({ exp: 1 })));
    expect(expired).toMatchObject({
      status: 401,
      body: { error: { type: 'unauthorized', message: 'Invalid access token: it has expired' } },
    });
    for (const text of ['siwx', 'a.b.c', 'sk-proj-x'])
      expect(await call('POST', '/mcp', bearer(text))).toMatchObject({ status: 401, body: INVALID_KEY });
  });
});

describe('API keys and wallets', () => {
  it('go on as they were, and never meet the code of tokens', async () => {
    const { call, keys, seen, token } = await world();
    const { text, record } = (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!;
    const byKey = { account: record.account, key: record.hash, wallet: null };
    expect((await call('POST', '/mcp', bearer(text))).body).toMatchObject(byKey);
    expect((await call('POST', '/mcp', { 'x-api-key': text })).body).toMatchObject(byKey);
    // A key beside somebody's token is the key's call, as beside any other bearer.
    expect((await call('POST', '/mcp', { 'x-api-key': text, ...bearer(token()) })).body).toMatchObject(byKey);
    for (const wrong of [createKey('live').text, `${text}x`, 'svc-sk-v2-', 'svc-sk-v2-a.b.c', createKey('admin').text])
      expect(await call('POST', '/mcp', bearer(wrong))).toMatchObject({ status: 401, body: INVALID_KEY });
    const header = await headerFor(solanaWallet('alice'));
    const signedIn = await call('POST', '/mcp', { 'sign-in-with-x': header, ...bearer(token()) });
    expect(signedIn.body).toMatchObject({ account: expect.stringMatching(/^solana:/), key: null });
    expect(seen()).toBe(0);
  });

  it('go on while the issuer is away', async () => {
    const { call, keys, token, issuer } = await world();
    issuer.answer = (_request, response) => response.destroy();
    const away = await call('POST', '/mcp', bearer(token()));
    expect(challengeOf(away)).toBeNull();
    expect(away).toMatchObject({ status: 503, body: { error: { message: expect.stringContaining('issuer') } } });
    const { text } = (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!;
    expect((await call('POST', '/mcp', bearer(text))).status).toBe(200);
  });
});

describe('a challenge', () => {
  it('says where the metadata is, and what is wrong with what was sent', async () => {
    const { call, token } = await world({ oauth: { scopes: ['mcp', 'mcp:call'] } });
    const tail = (path: string) => `scope="mcp mcp:call", resource_metadata="${METADATA}${path}"`;
    for (const path of ['/mcp', '/mcp/acme/weather', '/api/v1/mcp/weather']) {
      expect(challengeOf(await call('POST', `${path}?services=a`))).toBe(
        `Bearer realm="tollgate", ${tail(path)}, SIWx`,
      );
      expect(challengeOf(await call('POST', path, bearer(token({ exp: 1 }))))).toBe(
        `Bearer realm="tollgate", error="invalid_token", ${tail(path)}`,
      );
      expect(challengeOf(await call('POST', path, bearer('svc-sk-v2-x')))).toBe(
        `Bearer realm="tollgate", error="invalid_token", ${tail(path)}`,
      );
    }
    expect(challengeOf(await call('POST', '/mcp', bearer(token())))).toBeNull();
  });

  it.each([
    ['v1', sdkV1],
    ['v2', sdkV2],
  ])('leads a real client of SDK %s to the issuer', async (_version, sdk) => {
    const { url, issuer } = await world({ publicUrl: null, oauth: { requiredScope: 'mcp:call' } });
    const response = await fetch(`${url}/mcp/weather`, { method: 'POST' });
    const { resourceMetadataUrl, scope } = sdk.extractWWWAuthenticateParams(response);
    expect(scope).toBe('mcp:call');
    const metadata = await sdk.discoverOAuthProtectedResourceMetadata(`${url}/mcp/weather`, {
      resourceMetadataUrl: resourceMetadataUrl!,
    });
    expect(metadata).toMatchObject({ resource: `${url}/mcp/weather`, authorization_servers: [issuer.url] });
    // Without the challenge it looks in the well-known places by itself.
    expect(await sdk.discoverOAuthProtectedResourceMetadata(`${url}/mcp/weather`)).toEqual(metadata);
  });

  it('of a token without the required scope is 403 with the scope to ask for', async () => {
    const { call, token } = await world({ oauth: { scopes: ['openid'], requiredScope: 'mcp:call' } });
    const answer = await call('POST', '/mcp', bearer(token({ scope: 'openid' })));
    expect(answer).toMatchObject({ status: 403, body: { error: { type: 'permission_denied' } } });
    expect(challengeOf(answer)).toBe(
      `Bearer realm="tollgate", error="insufficient_scope", scope="mcp:call", resource_metadata="${METADATA}/mcp"`,
    );
    expect(challengeOf(await call('GET', '/api/v1/session/balance', bearer(token({ scope: 'openid' }))))).toContain(
      'insufficient_scope',
    );
  });

  it('of the API names the metadata of the API', async () => {
    const { call } = await world({ domains: [] });
    expect(challengeOf(await call('POST', '/api/v1/other'))).toContain(`resource_metadata="${METADATA}/api/v1"`);
  });

  it('without an issuer names none either', async () => {
    const { call } = await world({ enabled: false, domains: [] });
    expect(challengeOf(await call('POST', '/mcp'))).toBe('Bearer realm="tollgate"');
    expect(challengeOf(await call('POST', '/mcp', bearer('nonsense')))).toBe(
      'Bearer realm="tollgate", error="invalid_token"',
    );
  });
});

describe('the metadata', () => {
  it.each(['', '/mcp', '/mcp/weather', '/mcp/acme/weather', '/api/v1/mcp', '/api/v1/mcp/weather'])(
    'of "%s" names the resource and its issuer',
    async (path) => {
      const { call, issuer } = await world({ oauth: { scopes: ['openid'], requiredScope: 'mcp:call' } });
      const { status, headers, body } = await call('GET', `${WELL_KNOWN}${path}`);
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          resource: `${PUBLIC_URL}${path}`,
          authorization_servers: [issuer.url],
          scopes_supported: ['mcp:call', 'openid'],
          bearer_methods_supported: ['header'],
          resource_name: 'tollgate',
        },
      });
      expect(headers.get('access-control-allow-origin')).toBe('*');
    },
  );

  it('is of the address that was asked, where the gateway knows no other', async () => {
    const { call, url } = await world({ publicUrl: null });
    expect((await call('GET', `${WELL_KNOWN}/mcp`)).body).toMatchObject({ resource: `${url}/mcp` });
    expect((await call('GET', `${WELL_KNOWN}/mcp`)).body).not.toHaveProperty('scopes_supported');
    expect(challengeOf(await call('POST', '/mcp'))).toContain(`resource_metadata="${url}${WELL_KNOWN}/mcp"`);
  });

  it.each(['/', '/other', '/mcpx', '/api/v1/chat/completions', '/mcp/(x)'])('is not there for %s', async (path) => {
    const { call } = await world();
    const { status, body } = await call('GET', `${WELL_KNOWN}${path}`);
    expect({ status, body }).toMatchObject({
      status: 404,
      body: { error: { type: 'not_found', message: expect.stringContaining('No such endpoint') } },
    });
  });

  it('keeps what is encoded as it is', async () => {
    const { call } = await world();
    expect((await call('GET', `${WELL_KNOWN}/mcp/%22%0d%0a`)).body).toMatchObject({
      resource: `${PUBLIC_URL}/mcp/%22%0d%0a`,
    });
  });

  it('is not there at all without an issuer, and tokens are invalid keys', async () => {
    const { call, token } = await world({ enabled: false });
    for (const path of ['', '/mcp']) expect((await call('GET', `${WELL_KNOWN}${path}`)).status).toBe(404);
    expect(await call('POST', '/mcp', bearer(token()))).toMatchObject({ status: 401, body: INVALID_KEY });
  });
});
