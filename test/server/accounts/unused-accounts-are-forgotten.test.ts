import { inject, describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '#store';
import { escrowOf, type Ledger, OPERATOR_TREASURY } from '#billing';
import { createLedger } from '#billing/compose';
import { createUnfundedAccounts } from '#accounts';
import { createKeyStore } from '#auth/keys';
import { adHoc } from '../../support/ad-hoc.ts';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { evmWallet, SIGN_IN_TOML, signInHeaders, type TestWallet } from '../../support/wallets.ts';
import { ENGINES, openTestDatabase } from '../../gateway/test-database.ts';

// A wallet costs nothing, so what an account that never had 0.10 USD keeps has an end, and smaller bounds.

const DAY = 86_400_000;
const ORG = 'tollgate:local:org-0123456789abcdef';
const wallet = (digit: string) => `eip155:0x${digit.repeat(40)}`;

/** What an account may keep, in every table that has the account's name. */
const KEPT: Readonly<Record<string, string>> = {
  api_keys:
    "INSERT INTO api_keys (hash, account, label, development, disabled, created_at) VALUES ('h' || $1, $1, 'k', 0, 0, 1)",
  key_secrets: "INSERT INTO key_secrets (secret, key_hash) VALUES ('s' || $1, 'h' || $1)",
  key_names: "INSERT INTO key_names (hash, account, label, created_at) VALUES ('h' || $1, $1, 'k', 1)",
  account_limits:
    "INSERT INTO account_limits (account, subject, name, rules, notifies) VALUES ($1, 'account', 'n', '[]', 0)",
  account_webhooks: "INSERT INTO account_webhooks (account, sealed) VALUES ($1, 's')",
  budget_notices:
    "INSERT INTO budget_notices (budget, spend_limit, percent, account, at, body, attempts) VALUES ('b' || $1, 1, 1, $1, 1, '{}', 0)",
  provider_keys:
    "INSERT INTO provider_keys (account, provider, address, sealed, last_four, created_at) VALUES ($1, 'p', 'a', 's', 'abcd', 1)",
  wallets: "INSERT INTO wallets (wallet, account, bound_at) VALUES ('w' || $1, $1, 1)",
  consumers: "INSERT INTO consumers (account, label, created_at) VALUES ($1, '', 1)",
};
const MEMBER = adHoc("INSERT INTO members (account, member, role, name, created_at) VALUES ($1, $2, 'owner', '', 1)");

async function fill(database: Database, account: string): Promise<void> {
  for (const text of Object.values(KEPT)) await database.query(adHoc(text), [account]);
}

/** The tables that still have something of an account. */
async function keptOf(database: Database, account: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const table of Object.keys(KEPT)) {
    const column = table === 'key_secrets' ? "'h' || $1 = key_hash" : 'account = $1';
    const [row] = await database.query(adHoc(`SELECT COUNT(*) AS n FROM ${table} WHERE ${column}`), [account]);
    if (Number(row!['n']) > 0) found.push(table);
  }
  return found;
}

const credit = (ledger: Ledger, account: string, amount = 100_000n) =>
  ledger.transfer({ id: account, from: OPERATOR_TREASURY, to: escrowOf(account), amount, memo: '' });

describe.each(ENGINES)('%s', (engine) => {
  async function world() {
    const database = await openTestDatabase(engine);
    const clock = { now: 1_000 * DAY };
    const now = () => clock.now;
    const ledger = await createLedger({ database, now });
    onTestFinished(() => ledger.close());
    const accounts = createUnfundedAccounts({ database, ledger, now });
    const use = async (account: string) => {
      accounts.used(account);
      const noted = adHoc('SELECT 1 AS noted FROM unfunded_accounts WHERE account = $1 AND used_at = $2');
      await expect.poll(async () => (await database.query(noted, [account, clock.now])).length).toBe(1);
    };
    const seen = async () =>
      (await database.query(adHoc('SELECT account FROM unfunded_accounts ORDER BY account'))).map(
        (row) => row['account'],
      );
    const sweep = async () => {
      while ((await accounts.sweep(10)) === 10);
    };
    return { database, clock, ledger, use, seen, sweep };
  }

  test('90 days after its last use, all that an account without money keeps is forgotten', async () => {
    const { database, clock, ledger, use, seen, sweep } = await world();
    const [unused, empty, paid, cents] = [wallet('1'), wallet('2'), wallet('3'), wallet('4')];
    for (const account of [unused, empty, paid, cents]) await use(account);
    for (const account of [unused, paid, cents]) await fill(database, account);
    await credit(ledger, paid);
    await credit(ledger, cents, 99_999n);
    clock.now += DAY;
    await sweep();
    expect(await seen()).toEqual([unused, cents]);

    clock.now += 80 * DAY;
    await use(unused);
    clock.now += 89 * DAY;
    await sweep();
    expect(await keptOf(database, unused)).toEqual(Object.keys(KEPT));
    clock.now += DAY;
    await sweep();
    expect(await keptOf(database, unused)).toEqual([]);
    expect(await keptOf(database, cents)).toEqual([]);
    expect(await keptOf(database, paid)).toEqual(Object.keys(KEPT));
    expect(await seen()).toEqual([]);
  });

  test('what was there before uses were noted has 90 days from the first look', async () => {
    const { database, clock, sweep } = await world();
    const old = wallet('1');
    await fill(database, old);
    await database.query(adHoc('INSERT INTO unfunded_accounts (account, used_at, look_at) VALUES ($1, 0, 0)'), [old]);
    await sweep();
    clock.now += 89 * DAY;
    await sweep();
    expect(await keptOf(database, old)).toEqual(Object.keys(KEPT));
    clock.now += DAY;
    await sweep();
    expect(await keptOf(database, old)).toEqual([]);
  });

  test('an organisation goes with its members, and its members after it', async () => {
    const { database, clock, use, sweep } = await world();
    const [owner, other] = [wallet('1'), wallet('2')];
    for (const account of [ORG, owner]) {
      await use(account);
      await fill(database, account);
    }
    for (const member of [owner, other]) await database.query(MEMBER, [ORG, member]);
    clock.now += 90 * DAY;
    await sweep();
    expect(await keptOf(database, ORG)).toEqual([]);
    clock.now += 90 * DAY;
    await sweep();
    expect(await keptOf(database, owner)).toEqual([]);
  });

  test.each([
    ['a member who had money', { member: wallet('2'), funded: wallet('2') }],
    ['any money, which nobody else could use', { funded: ORG, amount: 1n }],
    ['a member who is no wallet', { member: 'oauth:example_org:anna' }],
    ['a name of the operator', { sql: "UPDATE consumers SET label = 'Acme' WHERE account = $1" }],
    ['a state of the operator', { sql: 'UPDATE consumers SET state_at = 1 WHERE account = $1' }],
    ['a limit of the operator on a key', { sql: "UPDATE api_keys SET limit_by = 'operator' WHERE account = $1" }],
    [
      'services, or earnings, as a provider whose id is derived',
      {
        sql: "INSERT INTO provider_registrations (provider, account, document, revision, created_at, updated_at) VALUES ('p', $1, '[]', 1, 1, 1)",
      },
    ],
    ['limits of the operator', { sql: "UPDATE account_limits SET subject = 'operator' WHERE account = $1" }],
    [
      'a note of the operator',
      { sql: "INSERT INTO account_notes (id, account, at, administrator, text) VALUES ('1', $1, 1, '', '')" },
    ],
    [
      'a deposit on its way',
      {
        sql: "INSERT INTO deposits (id, network, account, payer, amount, state, created_at, updated_at, looks) VALUES ('d', 'eip155:8453', $1, 'p', 1, 'received', 1, 1, 0)",
      },
    ],
    ['a membership', { sql: "INSERT INTO members VALUES ('tollgate:local:acme', $1, 'owner', '', 1)" }],
  ] as const)('an account stays with %s', async (_reason, why) => {
    const { database, clock, ledger, use, sweep } = await world();
    await use(ORG);
    await fill(database, ORG);
    if ('sql' in why) await database.query(adHoc(why.sql), [ORG]);
    if ('member' in why) await database.query(MEMBER, [ORG, why.member]);
    if ('funded' in why) await credit(ledger, why.funded, 'amount' in why ? why.amount : undefined);
    for (let days = 0; days < 400; days += 40) {
      clock.now += 40 * DAY;
      await sweep();
    }
    expect(await keptOf(database, ORG)).toEqual(Object.keys(KEPT));
  });

  test('an expired key is deleted after 90 days, whoever has it, and its secrets with it; its name stays', async () => {
    const { database, clock } = await world();
    const keys = createKeyStore(database, { now: () => clock.now });
    const account = 'tollgate:local:acme';
    const made = await keys.create({ account, label: 'old', kind: 'live', expiresAt: clock.now + DAY });
    await keys.create({ account, label: 'new', kind: 'live' });
    await keys.rotate(account, made!.record.hash, 0);
    clock.now += 90 * DAY;
    expect(await keys.sweep(10)).toBe(0);
    clock.now += DAY;
    expect(await keys.sweep(10)).toBe(1);
    expect((await keys.list(account, { offset: 0, limit: 9 })).map(({ label }) => label)).toEqual(['new']);
    expect([...(await keys.names(account)).values()].toSorted()).toEqual(['new', 'old']);
    expect(await database.query(adHoc('SELECT secret FROM key_secrets'))).toEqual([]);
  });

  test('a gateway notes uses, and bounds keys, organisations and patterns until money comes', async () => {
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    if (fresh) onTestFinished(fresh.drop);
    const spine = await startSpine({
      ...(fresh && { databaseUrl: fresh.url }),
      toml: `${UNHURRIED}\n${SIGN_IN_TOML}\n[billing]\nsweep_ms = 100`,
    });
    onTestFinished(() => spine.stop());
    const one: TestWallet = evmWallet();
    const send = async (method: string, path: string, body: unknown, more: object = {}) => {
      const { nonce } = (await (await spine.get('/auth/nonce')).json()) as { nonce: string };
      const response = await fetch(`${spine.url}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...(await signInHeaders(one, { nonce })), ...more },
        body: JSON.stringify(body),
      });
      return { status: response.status, text: await response.text() };
    };
    const long = Array.from({ length: 17 }, (_, at) => `${'x'.repeat(250)}${at}`);
    const tooLong = { status: 422, text: expect.stringContaining('have at most 4096') };
    const name = { name: 'k' };
    expect(await send('POST', '/keys', { ...name, allowed_services: long })).toEqual(tooLong);
    for (let at = 0; at < 20; at++) expect((await send('POST', '/keys', name)).status).toBe(201);
    expect(await send('POST', '/keys', name)).toEqual({
      status: 422,
      text: expect.stringContaining('An account that never had 0.10 USD has at most 20 keys'),
    });
    const [first] = await spine.app.keys.list(one.account, { offset: 0, limit: 1 });
    expect(await send('PATCH', `/keys/${first!.hash}`, { allowed_services: long })).toEqual(tooLong);
    const organisation = await send('POST', '/organisations', { label: 'Mine' });
    expect(organisation.status).toBe(201);
    expect(await send('POST', '/organisations', { label: 'Other' })).toEqual({
      status: 422,
      text: expect.stringContaining('makes at most 1 organisation.'),
    });
    const { account } = (JSON.parse(organisation.text) as { data: { account: string } }).data;
    const acting = { 'x-tollgate-account': account };
    const member = await send('PATCH', `/members/${one.account}`, { allowed_services: long }, acting);
    expect(member).toEqual(tooLong);

    // Its own sweep forgets both: the organisation, and its owner after it.
    const { database, ledger, keys } = spine.app;
    const seen = async () =>
      (await database.query(adHoc('SELECT account FROM unfunded_accounts ORDER BY account'))).map(
        (row) => row['account'],
      );
    expect(await seen()).toEqual([one.account, account]);
    const longAgo = adHoc('UPDATE unfunded_accounts SET used_at = 1, look_at = 1');
    await database.query(longAgo);
    await expect.poll(seen).toEqual([one.account]);
    expect(await database.query(adHoc('SELECT member FROM members'))).toEqual([]);
    await database.query(longAgo);
    await expect.poll(seen).toEqual([]);
    expect(await keys.list(one.account, { offset: 0, limit: 1 })).toEqual([]);

    await credit(ledger, one.account);
    expect((await send('POST', '/keys', { ...name, allowed_services: long })).status).toBe(201);
    for (const label of ['One', 'Two']) expect((await send('POST', '/organisations', { label })).status).toBe(201);
    expect(await spine.faults()).toEqual([]);
  });
});
