import * as fc from 'fast-check';
import { Access } from '../../../src/server/accounts/access.ts';
import { describe, expect, it } from 'vitest';
import { createKey } from '../../../src/gateway/auth/api-key.ts';
import { createKeyStore, type KeyStore, type NewKeyFields } from '../../../src/gateway/auth/key-store.ts';
import { DatabaseError } from '../../../src/foundation/store/database.ts';
import { ENGINES, openTestDatabase, type EngineName } from '../test-database.ts';
import { createKeyAuthenticator } from './key-authenticator.ts';
import { anyCharacter } from '../../support/any-character.ts';

const START = Date.parse('2026-03-04T23:59:00Z');
const ALICE = 'tollgate:local:alice';
const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

async function world({
  acceptDevelopmentKeys = true,
  engine = 'sqlite',
}: { acceptDevelopmentKeys?: boolean; engine?: EngineName } = {}) {
  const clock = { now: START };
  const now = () => clock.now;
  const database = await openTestDatabase(engine);
  /** One gateway: a store and an authenticator of its own over the shared database. */
  const gateway = () => {
    const keys = createKeyStore(database, { now });
    let finds = 0;
    const counted: KeyStore = { ...keys, findBySecret: (secret) => ((finds += 1), keys.findBySecret(secret)) };
    return { keys, finds: () => finds, ...createKeyAuthenticator({ keys: counted, acceptDevelopmentKeys, now }) };
  };
  const first = gateway();
  const create = async (fields: Partial<NewKeyFields> = {}) =>
    (await first.keys.create({ account: ALICE, label: 'k', kind: 'live', ...fields }))!;
  return { clock, first, gateway, create };
}

const refused = { code: 'unauthorized', message: 'Invalid API key', headers: { 'www-authenticate': 'Bearer' } };

describe('authentication', () => {
  it('names the account and what the key may do', async () => {
    const { first, create } = await world();
    const { text, record } = await create({
      label: 'robot',
      limit: 5_000_000n,
      limitReset: 'daily',
      allowedServices: ['m/one'],
      kind: 'development',
    });
    const caller = {
      account: ALICE,
      key: {
        hash: record.hash,
        secret: record.hash,
        label: 'robot',
        development: true,
        access: new Access([['m/one']]),
        restricted: true,
      },
      wallet: null,
      budgets: [
        {
          scope: 'key',
          id: `${record.hash}:daily-2026-03-04`,
          limit: 5_000_000n,
          resetsAt: Date.parse('2026-03-05T00:00:00Z'),
        },
      ],
    };
    expect(await first.authenticate(bearer(text))).toEqual(caller);
    expect(await first.authenticate({ 'x-api-key': text })).toEqual(caller);
  });

  it('answers unknown, mistyped, deleted, disabled and expired keys in the same words', async () => {
    const { clock, first, create } = await world();
    const [deleted, disabled, expired] = await Promise.all([create(), create(), create({ expiresAt: START + 10 })]);
    await first.keys.delete(ALICE, deleted.record.hash);
    await first.keys.update(ALICE, disabled.record.hash, { disabled: true });
    clock.now += 10;
    const texts = [
      createKey('live').text,
      `${deleted.text}x`,
      'siwx',
      createKey('admin').text,
      deleted.text,
      disabled.text,
      expired.text,
    ];
    for (const text of texts) await expect(first.authenticate(bearer(text))).rejects.toMatchObject(refused);
  });

  it('asks the database nothing about keys with a wrong checksum', async () => {
    const { first, create } = await world();
    const { text } = await create();
    const wrong = text.slice(0, -1) + (text.endsWith('a') ? 'b' : 'a');
    await expect(first.authenticate(bearer(wrong))).rejects.toMatchObject(refused);
    expect(first.finds()).toBe(0);
  });

  it('lets a key expire at its time, though it is cached', async () => {
    const { clock, first, create } = await world();
    const { text } = await create({ expiresAt: START + 500 });
    clock.now = START + 499;
    await first.authenticate(bearer(text));
    clock.now = START + 500;
    await expect(first.authenticate(bearer(text))).rejects.toMatchObject(refused);
  });

  it('begins a new budget with the period, though the key is cached', async () => {
    const { clock, first, create } = await world();
    const { text, record } = await create({ limit: 1n, limitReset: 'daily' });
    clock.now = Date.parse('2026-03-04T23:59:59.999Z');
    expect((await first.authenticate(bearer(text))).budgets![0]!.id).toBe(`${record.hash}:daily-2026-03-04`);
    clock.now += 1;
    expect((await first.authenticate(bearer(text))).budgets![0]!.id).toBe(`${record.hash}:daily-2026-03-05`);
  });

  it.each(ENGINES)(
    'notices a revocation by another gateway on %s within a second, and its own at once',
    async (engine) => {
      const { clock, first, gateway, create } = await world({ engine });
      const second = gateway();
      const { text, record } = await create();
      await Promise.all([first.authenticate(bearer(text)), second.authenticate(bearer(text))]);
      clock.now += 300;
      await first.keys.delete(ALICE, record.hash);
      await expect(first.authenticate(bearer(text))).rejects.toMatchObject(refused);
      await second.authenticate(bearer(text));
      clock.now += 1_000;
      await expect(second.authenticate(bearer(text))).rejects.toMatchObject(refused);
    },
  );

  it('notices a key disabled and enabled again', async () => {
    const { first, create } = await world();
    const { text, record } = await create();
    await first.authenticate(bearer(text));
    await first.keys.update(ALICE, record.hash, { disabled: true });
    await expect(first.authenticate(bearer(text))).rejects.toMatchObject(refused);
    await first.keys.update(ALICE, record.hash, { disabled: false });
    await expect(first.authenticate(bearer(text))).resolves.toMatchObject({ account: ALICE });
  });

  it('looks a key up once a second, also for many requests at once and for keys that are not there', async () => {
    const { clock, first, create } = await world();
    const { text } = await create();
    await Promise.all(Array.from({ length: 50 }, () => first.authenticate(bearer(text))));
    for (let round = 0; round < 50; round += 1) await first.authenticate(bearer(text));
    expect(first.finds()).toBe(1);
    clock.now += 1_000;
    await first.authenticate(bearer(text));
    expect(first.finds()).toBe(2);

    const unknown = createKey('live').text;
    for (let round = 0; round < 5; round += 1)
      await expect(first.authenticate(bearer(unknown))).rejects.toMatchObject(refused);
    expect(first.finds()).toBe(3);
  });

  it('refuses development keys in production', async () => {
    const { first, create } = await world({ acceptDevelopmentKeys: false });
    const { text } = await create({ kind: 'development' });
    await expect(first.authenticate(bearer(text))).rejects.toMatchObject(refused);
  });
});

describe('authentication while the database is slow or away', () => {
  const record = {
    hash: '',
    account: ALICE,
    label: 'k',
    member: null,
    client: null,
    development: false,
    disabled: false,
    createdAt: 0,
    expiresAt: null,
    limit: null,
    limitReset: null,
    limitSoft: false,
    limitNotify: null,
    limitBy: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
    allowedServices: null,
    askAbove: null,
    tags: null,
    continues: null,
    secretEndsAt: null,
    ofAccount: [],
  };

  it('does not let a lookup that began before a revocation count after it', async () => {
    const answers: ((key: typeof record | null) => void)[] = [];
    const listeners: ((hash: string) => void)[] = [];
    const clock = { now: START };
    const { authenticate } = createKeyAuthenticator({
      keys: {
        findWithLimits: async () => null,
        findBySecret: () => new Promise((resolve) => answers.push(resolve)),
        onChange: (listener) => (listeners.push(listener), () => {}),
      },
      acceptDevelopmentKeys: true,
      now: () => clock.now,
    });
    const { text, hash } = createKey('live');

    // Revoked here while the lookup was under way.
    const before = authenticate(bearer(text));
    for (const listener of listeners) listener(hash);
    const after = authenticate(bearer(text));
    answers[0]!(record);
    await before;
    answers[1]!(null);
    await expect(after).rejects.toMatchObject(refused);

    // Revoked elsewhere while a lookup hangs for longer than a second: who comes later does not join it.
    clock.now += 1_000;
    const hanging = authenticate(bearer(text));
    clock.now += 1_000;
    const late = authenticate(bearer(text));
    answers[3]!(null);
    await expect(late).rejects.toMatchObject(refused);
    answers[2]!(record);
    await hanging;
    await expect(authenticate(bearer(text))).rejects.toMatchObject(refused);
  });

  it('rejects with the error of the database, and recovers with it', async () => {
    let down = true;
    const { authenticate } = createKeyAuthenticator({
      keys: {
        findWithLimits: async () => null,
        findBySecret: async (hash) => {
          if (down) throw new DatabaseError('gone', { code: 'connection', unavailable: true });
          return { ...record, hash };
        },
        onChange: () => () => {},
      },
      acceptDevelopmentKeys: true,
      now: () => START,
    });
    const { text } = createKey('live');
    await expect(authenticate(bearer(text))).rejects.toMatchObject({ unavailable: true });
    down = false;
    await expect(authenticate(bearer(text))).resolves.toMatchObject({ account: ALICE });
  });

  it('survives any header, and lets none of it in', async () => {
    const { authenticate } = createKeyAuthenticator({
      keys: { findWithLimits: async () => null, findBySecret: async () => null, onChange: () => () => {} },
      acceptDevelopmentKeys: true,
      now: () => START,
    });
    const header = fc.option(
      fc.oneof(
        fc.string({ unit: anyCharacter }),
        fc.string().map((text) => `Bearer ${text}`),
      ),
      { nil: undefined },
    );
    await fc.assert(
      fc.asyncProperty(header, header, async (authorization, key) => {
        await expect(
          authenticate({ authorization, ...(key === undefined ? {} : { 'x-api-key': key }) }),
        ).rejects.toMatchObject({
          code: 'unauthorized',
        });
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 200_000 : 400 },
    );
  });
});
