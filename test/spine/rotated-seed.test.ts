import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { createIdentity } from '../../src/gateway/auth/identity.ts';
import { createRunTokens } from '../../src/gateway/auth/credential.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import { IDENTITY_SEED, MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { startVendor } from './prices/vendor-upstream.ts';

// The seed of the identity is replaced: nothing that it has signed or sealed is lost, and credentials of before end
// with the option that names it.

const [FIRST, SECOND, THIRD] = [IDENTITY_SEED, '22'.repeat(32), '33'.repeat(32)];
const ask = (model: string) => ({ model, max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] });
const OWN_KEY = 'sk-own-0123456789-abcdefgh-WXYZ';
const WEBHOOK = { url: 'https://receiver.example/budgets', secret: 'a long random secret' };
const SEALED = adHoc('SELECT sealed FROM provider_keys UNION ALL SELECT sealed FROM account_webhooks ORDER BY sealed');

describe.each(ENGINES)('%s', (engine) => {
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
        env: { TOLLGATE_IDENTITY_SEED: seed, TOLLGATE_PREVIOUS_IDENTITY_SEED: previous },
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

    await expect(start(SECOND)).rejects.toThrow('TOLLGATE_PREVIOUS_IDENTITY_SEED');
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
    const told = ({ logs }: Spine) => logs.some((line) => line.includes('remove server.previous_identity_seed'));

    const both = await start(SECOND, FIRST);
    await holds(both);
    expect(told(both)).toBe(true);
    const sealedSecond = await sealed(both);
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

it('accepts credentials of the previous seed as long as it is named, and not of those that the database remembers', () => {
  const tokensOf = (secret: readonly Buffer[]) => createRunTokens({ secret, now: () => 0 });
  const grant = { parent: 'gen-1', account: 'acme', key: null };
  const token = tokensOf(createIdentity({ seed: FIRST }).accepted('run tokens')).issue(grant, 1);
  const others = { previous: null, former: [{ seed: FIRST, until: 5_000 }] };
  const remembered = createIdentity({ seed: SECOND }, others);
  const named = createIdentity({ seed: SECOND }, { ...others, previous: FIRST });
  expect(tokensOf(named.accepted('run tokens')).open(token)).toEqual(grant);
  expect(tokensOf(remembered.accepted('run tokens')).open(token)).toBeNull();
  expect(tokensOf(remembered.secrets('run tokens')).open(token)).toEqual(grant);
  // Registered clients keep the secret that they got.
  const [old, present] = [FIRST, SECOND].map((seed) => createIdentity({ seed }).secret('clients'));
  expect(remembered.secretAt('clients', 4_999)).toEqual(old);
  expect(remembered.secretAt('clients', 5_000)).toEqual(present);
});
