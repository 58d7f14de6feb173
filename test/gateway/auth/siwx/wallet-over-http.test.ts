import { describe, expect, it, onTestFinished } from 'vitest';
import { accountTotals, createLedger, createPriceBook, createRefunds } from '#billing/compose';
import { createRateLimiter, createRatePolicies, limitedAs } from '#limits';
import { createServer } from '#http';
import {
  createAttempts,
  createAuthenticator,
  createIdentity,
  createKeyStore,
  createNonces,
  createSignIn,
  nonceRoutes,
  createKey,
} from '#auth';
import { createLimitsStore } from '#accounts';
import { localAccount } from '#accounts/names';
import { accountRoutes } from '#pages';
import { sendRaw } from '../../../support/raw-http.ts';
import { LIMITS } from '../../../server/accounts/gateway-world.ts';
import { openTestDatabase } from '../../test-database.ts';
import {
  DOMAIN,
  encode,
  evmWallet,
  fieldsFor,
  headerFor,
  iso,
  solanaWallet,
  START,
  textOf,
  type TestWallet,
} from './wallets.ts';

interface Body {
  readonly error: { readonly type: string; readonly message: string };
  readonly data: { readonly hash: string; readonly label: string };
  readonly key: string;
  readonly nonce: string;
  readonly example: string;
  readonly caip_account_id: string;
  readonly [other: string]: unknown;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Of many endpoints: what is in it is for the expectations to say. */
  readonly body: Body;
}

/** The account endpoints of a gateway at which wallets sign in, on a real socket. */
async function world({
  failuresPerMinute = 1_000,
  domains = [DOMAIN],
}: { failuresPerMinute?: number; domains?: string[] } = {}) {
  const clock = { now: START };
  const now = () => clock.now;
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database, now });
  onTestFinished(() => ledger.close());
  const store = createKeyStore(database, { now });
  let finds = 0;
  const keys: typeof store = { ...store, find: (hash) => ((finds += 1), store.find(hash)) };
  const attempts = createAttempts({ perMinute: failuresPerMinute, now });
  const signIn = await createSignIn({
    domains,
    lifetimeMsMax: 3_600_000,
    skewMs: 30_000,
    chains: [],
    attempts,
    now,
    elapsed: now,
  });
  const nonces = createNonces({
    secret: createIdentity({ seed: '0'.repeat(64) }).secret('sign-in nonces'),
    database,
    now,
  });
  const authenticator = createAuthenticator({
    keys,
    limits: createLimitsStore(database, { now }),
    signIn,
    attempts,
    acceptDevelopmentKeys: true,
    now,
  });
  const limiter = createRateLimiter({ redis: null, now });
  const policies = createRatePolicies({ ...LIMITS, requestsPerMinute: 10_000 });

  const server = createServer({ limits: LIMITS, onError: (error) => expect.unreachable(String(error)) });
  const admit = async (headers: Parameters<typeof authenticator.authenticate>[0], address: string) => {
    const caller = await authenticator.authenticate(headers, address);
    return {
      caller,
      rate: await limiter.take(limitedAs(caller), policies.policyOf(caller), { requests: 1, tokens: 0 }),
    };
  };
  await server.register(
    accountRoutes({
      refusals: { refusalsOf: () => [], since: 0 },
      limits: { limitsOf: async () => [] },
      members: { find: async () => null },
      countNewKey: async () => {},
      offers: () => true,
      admit,
      keys,
      nonces,
      ledger,
      refunds: createRefunds(database, ledger),
      prices: createPriceBook(database, now),
      usage: async () => new Map(),
      findLocks: async () => ({ records: [], next: null }),
      findArchived: async () => null,
      archivedUntil: async () => 0,
      totals: (account) => accountTotals(database, account),
      findTransfer: async () => null,
      movements: async () => [],
      tasks: { liveStatesOf: async () => new Map() },
      receipt: () => null,
      networks: [],
      now,
    }),
    { prefix: '/api/v1' },
  );
  await server.register(nonceRoutes({ nonces, signIn, now }), { prefix: '/api/v1' });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());

  const call = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: unknown,
  ): Promise<Answer> => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
  };
  const nonce = async (): Promise<string> => (await call('GET', '/auth/nonce')).body.nonce;
  const signed = async (wallet: TestWallet, fresh: string | null = null) => ({
    'sign-in-with-x': await headerFor(wallet, { nonce: fresh }),
  });
  return { clock, url, keys, finds: () => finds, call, nonce, signed };
}

const alice = solanaWallet('alice');
const error401 = { error: { type: 'unauthorized', code: 401, param: null, message: expect.any(String) } };

describe('a wallet', () => {
  it.each([alice, evmWallet('alice')])('has an account as soon as it signs in, and nothing on it', async (wallet) => {
    const { call, signed } = await world();
    const { status, body } = await call('GET', '/session/balance', await signed(wallet));
    const expected =
      wallet.namespace === 'solana'
        ? `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:${wallet.address}`
        : `eip155:8453:${wallet.address.toLowerCase()}`;
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        caip_account_id: expected,
        balance_micro_usdc: 0,
        balance_usd: expect.stringMatching(/^0/),
        locked_micro_usdc: 0,
      },
    });
  });

  it('signs in under each name of the header, and wins over a key that is there as well', async () => {
    const { call, signed, keys } = await world();
    const { 'sign-in-with-x': header } = await signed(alice);
    const key = (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!.text;
    for (const headers of [
      { 'SIGN-IN-WITH-X': header },
      { 'X-Sign-In-With-X': header },
      { 'X-SIWX': header },
      { 'sign-in-with-x': header, authorization: 'Bearer siwx' },
      { 'sign-in-with-x': header, authorization: `Bearer ${key}` },
      { 'sign-in-with-x': header, 'x-api-key': key },
    ] as Record<string, string>[]) {
      expect((await call('GET', '/session/balance', headers)).body.caip_account_id).toContain(alice.address);
    }
    const broken = await call('GET', '/session/balance', {
      'sign-in-with-x': 'broken',
      authorization: `Bearer ${key}`,
    });
    expect(broken).toMatchObject({ status: 401, body: error401 });
    expect(broken.headers.get('www-authenticate')).toBe('SIWx, Bearer');
  });

  it('is refused when its header is sent twice, or two names hold two values', async () => {
    const { url, call, signed } = await world();
    const { 'sign-in-with-x': header } = await signed(alice);
    const twice = await sendRaw(
      url,
      `GET /api/v1/session/balance HTTP/1.1\r\nHost: x\r\nSIGN-IN-WITH-X: ${header}\r\nsign-in-with-x: ${header}\r\n\r\n`,
    );
    expect(twice.status).toBe(401);
    expect(
      (
        await call('GET', '/session/balance', {
          'sign-in-with-x': header,
          'x-siwx': (await signed(solanaWallet('bob')))['sign-in-with-x'],
        })
      ).status,
    ).toBe(401);
  });

  it('makes a key with a nonce, once, and the key is its own', async () => {
    const { call, nonce, signed } = await world();
    const headers = await signed(alice, await nonce());
    const made = await call('POST', '/keys', headers, { label: 'robot' });
    expect(made.status).toBe(201);
    const again = await call('POST', '/keys', headers, { label: 'robot' });
    expect(again).toMatchObject({
      status: 401,
      body: { error: { type: 'unauthorized', message: expect.stringContaining('used before') } },
    });
    const balance = await call('GET', '/session/balance', { authorization: `Bearer ${made.body.key}` });
    expect(balance.body.caip_account_id).toContain(alice.address);
    expect((await call('GET', '/keys', headers)).body.data).toHaveLength(1);
  });

  it('makes no key without a nonce of this gateway', async () => {
    const { call, signed, clock, nonce } = await world();
    const old = await nonce();
    const without = await call('POST', '/keys', await signed(alice), {});
    expect(without).toMatchObject({
      status: 401,
      body: { error: { message: expect.stringContaining('/api/v1/auth/nonce') } },
    });
    expect((await call('POST', '/keys', await signed(alice, 'a1b2c3d4e5f67890'), {})).status).toBe(401);
    clock.now += 11 * 60_000;
    const late = await headerFor(alice, { nonce: old, issuedAt: iso(clock.now), expirationTime: null });
    expect((await call('POST', '/keys', { 'x-siwx': late }, {})).status).toBe(401);
    expect((await call('GET', '/keys', { 'x-siwx': late })).body.data).toHaveLength(0);
  });

  it('makes one key of many that it asks for at once with one nonce', async () => {
    const { call, nonce, signed } = await world();
    const headers = await signed(alice, await nonce());
    const answers = await Promise.all(Array.from({ length: 40 }, () => call('POST', '/keys', headers, {})));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(39);
    expect((await call('GET', '/keys', headers)).body.data).toHaveLength(1);
  });

  it('keeps its nonce when what it asked for was wrong', async () => {
    const { call, nonce, signed } = await world();
    const headers = await signed(alice, await nonce());
    expect((await call('POST', '/keys', headers, { expires_at: '2020-01-01T00:00:00Z' })).status).toBe(400);
    expect((await call('POST', '/keys', headers, {})).status).toBe(201);
  });

  it('renames, stops and deletes its keys without a nonce, and those of nobody else', async () => {
    const { call, nonce, signed } = await world();
    const { hash } = (await call('POST', '/keys', await signed(alice, await nonce()), {})).body.data;
    const stranger = await signed(evmWallet('mallory'));
    expect((await call('PATCH', `/keys/${hash}`, stranger, { label: 'mine' })).status).toBe(404);
    expect((await call('DELETE', `/keys/${hash}`, stranger)).status).toBe(404);
    expect((await call('PATCH', `/keys/${hash}`, await signed(alice), { label: 'renamed' })).body.data.label).toBe(
      'renamed',
    );
    expect((await call('PATCH', `/keys/${hash}`, await signed(alice), { disabled: true })).status).toBe(200);
    expect((await call('DELETE', `/keys/${hash}`, await signed(alice))).status).toBe(200);
  });
});

describe('a key of a wallet', () => {
  it.each([
    { limit: null },
    { limit_reset: 'daily' },
    { expires_at: null },
    { allowed_services: null },
    { disabled: false },
  ])('is loosened by %j with a nonce alone: a header that was caught must not free a key for ever', async (change) => {
    const { call, nonce, signed } = await world();
    const limits = { limit: 1, expires_at: '2099-01-01T00:00:00Z', allowed_services: ['a'] };
    const { hash } = (await call('POST', '/keys', await signed(alice, await nonce()), limits)).body.data;
    const caught = await call('PATCH', `/keys/${hash}`, await signed(alice), change);
    expect(caught).toMatchObject({
      status: 401,
      body: { error: { message: expect.stringContaining('/api/v1/auth/nonce') } },
    });
    const headers = await signed(alice, await nonce());
    expect((await call('PATCH', `/keys/${hash}`, headers, change)).status).toBe(200);
    expect((await call('PATCH', `/keys/${hash}`, headers, change)).status).toBe(401);
  });
});

describe('a caller with a key', () => {
  it('makes keys without a nonce', async () => {
    const { call, keys } = await world();
    const key = (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!.text;
    expect((await call('POST', '/keys', { 'x-api-key': key }, {})).status).toBe(201);
  });
});

describe('the nonce endpoint', () => {
  it('needs no credential and shows what to sign, which then signs in', async () => {
    const { call } = await world();
    const { status, headers, body } = await call('GET', '/auth/nonce');
    expect({ status, cache: headers.get('cache-control') }).toEqual({ status: 200, cache: 'no-store' });
    expect(body).toMatchObject({
      expires_at: iso(START + 600_000),
      domains: [DOMAIN],
      message: { domain: DOMAIN, uri: `https://${DOMAIN}/`, version: '1', nonce: body.nonce },
    });
    const message = body.example.replace('<address>', alice.address);
    const header = encode({ message, signature: await alice.sign(message) });
    expect((await call('POST', '/keys', { 'sign-in-with-x': header }, {})).status).toBe(201);
  });

  it('is not there where wallets cannot sign in, and the sign-in itself says so', async () => {
    const { call, signed } = await world({ domains: [] });
    expect((await call('GET', '/auth/nonce')).status).toBe(404);
    const refused = await call('GET', '/keys', await signed(alice));
    expect(refused).toMatchObject({
      status: 401,
      body: { error: { message: expect.stringContaining('No wallet can sign in at this gateway') } },
    });
    expect((await call('GET', '/keys')).headers.get('www-authenticate')).toBe('Bearer');
  });

  it('is told of in the answer to a request without a credential', async () => {
    const { call } = await world();
    const { headers, body } = await call('GET', '/keys');
    expect(headers.get('www-authenticate')).toBe('Bearer, SIWx');
    expect(body.error.message).toContain('/api/v1/auth/nonce');
  });
});

describe('an address that fails too often', () => {
  const forged = async (index: number) => {
    const message = textOf(fieldsFor(alice, { requestId: `r${index}` }));
    return { 'sign-in-with-x': encode({ message, signature: await solanaWallet('mallory').sign(message) }) };
  };

  it('is refused unseen, but for sign-ins and keys that are known to be good', async () => {
    const { call, clock, signed, keys, finds } = await world({ failuresPerMinute: 4 });
    const headers = await signed(alice);
    const key = { 'x-api-key': (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!.text };
    const other = {
      'x-api-key': (await keys.create({ account: localAccount('bob'), label: 'k', kind: 'live' }))!.text,
    };
    expect((await call('GET', '/keys', headers)).status).toBe(200);
    expect((await call('GET', '/keys', key)).status).toBe(200);
    for (let index = 0; index < 2; index += 1)
      expect((await call('GET', '/keys', await forged(index))).status).toBe(401);
    for (let index = 0; index < 2; index += 1)
      expect((await call('GET', '/keys', { 'x-api-key': createKey('live').text })).status).toBe(401);

    const before = finds();
    for (const refused of [
      await forged(9),
      { 'x-api-key': createKey('live').text },
      other,
      await signed(evmWallet('carol')),
    ]) {
      const { status, body, headers: answered } = await call('GET', '/keys', refused);
      expect({ status, type: body.error.type }).toEqual({ status: 429, type: 'rate_limit_exceeded' });
      expect(Number(answered.get('retry-after'))).toBeGreaterThan(0);
    }
    expect(finds()).toBe(before);
    expect((await call('GET', '/keys', headers)).status).toBe(200);
    clock.now += 5_000;
    expect((await call('GET', '/keys', key)).status).toBe(200);
    // What is refused without any work is not counted, and still told apart.
    expect((await call('GET', '/keys', { 'sign-in-with-x': 'garbage' })).status).toBe(401);
    clock.now += 60_000;
    expect((await call('GET', '/keys', other)).status).toBe(200);
  });
});
