import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { createIdentity } from '../../src/gateway/auth/identity.ts';
import { createRunTokens } from '../../src/gateway/auth/credential.ts';
import { register } from '../gateway/authorization/support/raw-client.ts';
import { openBrowser } from '../gateway/auth/sessions/browser.ts';
import { openRealtime } from '../openai/realtime/support/realtime-client.ts';
import { startRealtimeProvider } from '../openai/realtime/support/realtime-provider.ts';
import { voiceBlock } from '../openai/realtime/support/voice-gateway.ts';
import { CLUSTER_TOML, reachable } from '../support/cluster.ts';
import { dialIn, offeredModel } from '../support/dial-in.ts';
import { startProvider } from '../support/provider.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { BOTH_ENGINES } from '../support/engines.ts';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import { IDENTITY_SEED, MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { solanaWallet } from '../support/wallets.ts';
import { startVendor } from './prices/vendor-upstream.ts';

// The seed of the identity is replaced: nothing that it has signed or sealed is lost, and credentials of before end
// with the option that names it.

const [FIRST, SECOND, THIRD] = [IDENTITY_SEED, '22'.repeat(32), '33'.repeat(32)];
const ask = (model: string) => ({ model, max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] });
const OWN_KEY = 'sk-own-0123456789-abcdefgh-WXYZ';
const WEBHOOK = { url: 'https://receiver.example/budgets', secret: 'a long random secret' };
const SEALED = adHoc('SELECT sealed FROM provider_keys UNION ALL SELECT sealed FROM account_webhooks ORDER BY sealed');

describe.each(BOTH_ENGINES)('%s', (engine) => {
  let fresh: FreshDatabase | null = null;
  let vendor: Awaited<ReturnType<typeof startVendor>>;
  beforeEach(async () => {
    vendor = await startVendor();
    vendor.reply = { usage: { prompt_tokens: 60, completion_tokens: 10, total_tokens: 70 } };
    if (engine === 'postgres') fresh = await freshDatabase(inject('postgresUrl'));
  });
  afterEach(async () => {
    await vendor.stop();
    await fresh?.drop();
    fresh = null;
  });

  it('is replaced by the next one, and that by another', async () => {
    const dataDir = newDataDirectory();
    const toml =
      UNHURRIED +
      modelBlock({
        name: 'acme/model',
        provider: 'Acme',
        url: vendor.url,
        prompt: 2,
        completion: 10,
        params: 'own_keys = true',
      });
    const start = (seed: string, previous?: string) =>
      startSpine({
        dataDir,
        toml,
        credit: '1',
        env: { TOLLGATE_IDENTITY_SEED: seed, TOLLGATE_SECOND_IDENTITY_SEED: previous },
        ...(fresh === null ? {} : { databaseUrl: fresh.url }),
      });
    const sealed = async ({ app }: Spine) => (await app.database.query(SEALED)).map((row) => row['sealed']);

    const first = await start(FIRST);
    const { key } = first;
    const bearer = { authorization: `Bearer ${key}` };
    const paid = await first.post('/chat/completions', ask(MODEL), { 'x-receipt': '1' });
    const receipt = paid.headers.get('x-receipt')!;
    expect((await first.post('/provider-keys', { provider: 'Acme', key: OWN_KEY })).status).toBe(201);
    await first.app.notices.webhooks.put(first.account, WEBHOOK);
    const kept = (await (await first.post('/responses', { model: MODEL, input: 'hello', store: true })).json()) as {
      readonly id: string;
    };
    const providers = first.app.catalog.offers().map(({ provider }) => provider.id);
    const sealedFirst = await sealed(first);
    expect(sealedFirst).toHaveLength(2);
    expect(await first.faults()).toEqual([]);
    await first.stop();

    await expect(start(SECOND)).rejects.toThrow('TOLLGATE_SECOND_IDENTITY_SEED');
    await expect(start(SECOND, THIRD)).rejects.toThrow('belongs to gateways with the identity');

    /** What was signed and sealed before is as it was. */
    const holds = async (spine: Spine) => {
      const jwks = (await (await fetch(`${spine.origin}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
      const { payload } = await compactVerify(receipt, createLocalJWKSet(jwks));
      expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({ account: first.account });
      const again = await spine.get(`/responses/${kept.id}`, bearer);
      expect(await again.json()).toMatchObject({ id: kept.id, status: 'completed' });
      expect(await spine.app.notices.webhooks.find(first.account)).toEqual(WEBHOOK);
      const before = vendor.reached.length;
      const called = await spine.post('/chat/completions', ask('acme/model'), bearer);
      expect(called.status).toBe(200);
      expect(vendor.reached[before]!.headers['authorization']).toBe(`Bearer ${OWN_KEY}`);
      expect(spine.app.catalog.offers().map(({ provider }) => provider.id)).toEqual(providers);
      expect(await spine.faults()).toEqual([]);
    };
    const reportOf = async ({ origin, adminKey }: Spine) => {
      const response = await fetch(`${origin}/admin/v1/identity`, { headers: { authorization: `Bearer ${adminKey}` } });
      return ((await response.json()) as { readonly data: object }).data;
    };
    const told = ({ logs }: Spine) => logs.some((line) => line.includes('remove server.second_identity_seed'));

    const both = await start(SECOND, FIRST);
    await holds(both);
    expect(told(both)).toBe(true);
    const sealedSecond = await sealed(both);
    expect(await reportOf(both)).toMatchObject({
      former: [{ receipt_key: createIdentity({ seed: FIRST }).receiptKey.id }],
      // The rest was sealed anew.
      depends_on_former: [{ what: 'responses', count: 1, until: expect.stringMatching(/Z$/) as string }],
    });
    expect(sealedSecond.filter((text) => sealedFirst.includes(text))).toEqual([]);
    await both.stop();

    const alone = await start(SECOND);
    await holds(alone);
    expect(told(alone)).toBe(false);
    expect(await sealed(alone)).toEqual(sealedSecond);
    await alone.stop();
    await expect(start(FIRST)).rejects.toThrow('belongs to gateways with the identity');

    await (await start(THIRD, SECOND)).stop();
    const third = await start(THIRD);
    await holds(third);
    await third.stop();
  });
});

it('accepts credentials of the second seed as long as it is set, and not of those that the database remembers', () => {
  const tokensOf = (secret: readonly Buffer[]) => createRunTokens({ secret, now: () => 0 });
  const grant = { parent: 'gen-1', account: 'acme', key: null };
  const old = createIdentity({ seed: FIRST });
  const token = tokensOf(old.accepted('run tokens')).issue(grant, 1);
  const remembered = createIdentity({ seed: SECOND }, { second: null, former: [FIRST] });
  const both = createIdentity({ seed: SECOND }, { second: { seed: FIRST }, former: [FIRST] });
  expect(tokensOf(both.accepted('run tokens')).open(token)).toEqual(grant);
  expect(tokensOf(remembered.accepted('run tokens')).open(token)).toBeNull();
  expect(tokensOf(remembered.secrets('run tokens')).open(token)).toEqual(grant);
  // Registered clients keep the secret that they got. Those of before ids were stored are of the first seed.
  expect(remembered.secretBy('clients', old.receiptKey.id)).toEqual(old.secret('clients'));
  expect(remembered.secretBy('clients', null)).toEqual(old.secret('clients'));
  expect(remembered.secretBy('clients', remembered.receiptKey.id)).toEqual(remembered.secret('clients'));
});

it('three gateways of one database get it one by one, and none of them refuses what another made', async () => {
  const database = await freshDatabase(inject('postgresUrl'));
  onTestFinished(() => database.drop());
  const voices = await startRealtimeProvider();
  onTestFinished(() => voices.stop());
  const provider = await startProvider();
  onTestFinished(() => provider.stop());
  const toml = `${UNHURRIED}\n[authorization]\nenabled = true\n[server]\npublic_url = "https://gateway.example"\n${voiceBlock(voices.url)}\n${CLUSTER_TOML}`;
  const wallet = solanaWallet();
  const dirs = [newDataDirectory(), newDataDirectory(), newDataDirectory()] as const;
  const running: (Spine | undefined)[] = [];
  onTestFinished(async () => void (await Promise.all(running.map(async (spine) => spine?.stop()))));
  const set = async (at: number, seed: string, second?: string) => {
    await running[at]?.stop();
    const env = { TOLLGATE_IDENTITY_SEED: seed, TOLLGATE_SECOND_IDENTITY_SEED: second };
    running[at] = await startSpine({ databaseUrl: database.url, dataDir: dirs[at]!, provider, toml, env });
  };

  /** What one gateway makes is good at another. */
  const areOne = async () => {
    const all = running as Spine[];
    for (const maker of all)
      for (const user of all.filter((each) => each !== maker)) {
        const paid = await maker.post('/chat/completions', ask(MODEL), { 'x-receipt': '1' });
        const jwks = (await (await fetch(`${user.origin}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
        await compactVerify(paid.headers.get('x-receipt')!, createLocalJWKSet(jwks));

        const body = { model: MODEL, input: 'hello', store: true };
        const { id } = (await (await maker.post('/responses', body)).json()) as { readonly id: string };
        const kept = await user.get(`/responses/${id}`, { authorization: `Bearer ${maker.key}` });
        expect(kept.status).toBe(200);

        const made = await maker.post('/realtime/client_secrets', { session: { model: 'voice' } });
        const { value } = (await made.json()) as { readonly value: string };
        const client = await openRealtime(`${user.origin.replace('http', 'ws')}/v1/realtime`, value);
        client.socket.close();
        await client.closed;

        const operator = openBrowser(maker.origin);
        const { cookie } = await operator.ask('POST', '/admin/v1/session', undefined, {
          authorization: `Bearer ${maker.adminKey}`,
        });
        // The name of a cookie has the port of its gateway, because browsers send it to all ports.
        const there = cookie!.split(';')[0]!.replace(new URL(maker.origin).port, new URL(user.origin).port);
        const seen = await fetch(`${user.origin}/admin/v1/session`, { headers: { cookie: there } });
        expect(await seen.json()).toMatchObject({ signed_in: true });

        const registered = await register(maker.origin, { token_endpoint_auth_method: 'client_secret_post' });
        const refused = await fetch(`${user.origin}/oauth/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({
            grant_type: 'authorization_code',
            code: 'none',
            client_id: registered.client_id,
            client_secret: registered.client_secret!,
            redirect_uri: (registered['redirect_uris'] as string[])[0]!,
            code_verifier: 'v'.repeat(43),
          }),
        });
        // The client is right, and the code is not.
        expect(await refused.json()).toMatchObject({ error: 'invalid_grant' });
      }
    // A provider that is connected to one is called through each.
    const proxy = await dialIn({ router: all[0]!.origin, wallet, services: offeredModel({ url: provider.url }) });
    try {
      await reachable(
        all.map(({ origin }) => origin),
        'tunnel/model',
      );
      for (const each of all) expect((await each.post('/chat/completions', ask('tunnel/model'))).status).toBe(200);
    } finally {
      await proxy.close();
    }
    for (const each of all) expect(await each.faults()).toEqual([]);
  };

  for (const at of [0, 1, 2]) await set(at, FIRST);
  for (const at of [0, 1, 2]) await set(at, FIRST, SECOND);
  await set(0, SECOND, FIRST);
  await areOne();
  // One that has not got the change yet starts again: it does not undo it.
  await set(1, FIRST, SECOND);
  await areOne();
  const signing = async ({ origin }: Spine) =>
    ((await (await fetch(`${origin}/.well-known/jwks.json`)).json()) as JSONWebKeySet).keys[0];
  expect(await signing(running[1]!)).toEqual(await signing(running[0]!));
  await set(1, SECOND, FIRST);
  await set(2, SECOND, FIRST);
  await set(2, SECOND);
  await areOne();
});
