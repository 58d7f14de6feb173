import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { earningsOf, escrowOf, treasuryOf } from '#billing';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { evmWallet, signInHeaders, solanaWallet } from '../support/wallets.ts';

// What operators do to accounts and providers at the same moment, on PostgreSQL at two gateways.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 100 : 5;

describe.each(ENGINES)('on %s', (engine) => {
  let spine: Spine;
  /** The gateways; one of them for the embedded database. */
  let gateways: readonly [Spine, Spine];
  let drop = async () => {};
  let skew = 0;
  beforeAll(async () => {
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    drop = fresh?.drop ?? drop;
    const options = { toml: UNHURRIED, now: () => Date.now() + skew, ...(fresh ? { databaseUrl: fresh.url } : {}) };
    spine = await startSpine(options);
    gateways = [spine, fresh ? await startSpine({ ...options, credit: '0' }) : spine];
  });
  afterAll(async () => {
    if (gateways[1] !== spine) await gateways[1].stop();
    await spine.stop();
    await drop();
  });
  afterEach(async () => {
    expect(await spine.faults()).toEqual([]);
  });

  interface Answer {
    readonly status: number;
    readonly data: Record<string, unknown>;
    readonly error: { readonly message: string; readonly param: string | null };
  }
  const admin = async (path: string, body?: object, at = spine, method = 'POST'): Promise<Answer> => {
    const response = await fetch(`${at.origin}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${at.adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) };
  };
  const at = (account: string, what = '') => `/accounts/${encodeURIComponent(account)}${what}`;
  const reason = { reason: 'a test' };
  const availableOf = async (account: string) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n;

  it('an account that is closed and unfrozen at once is either closed and empty, or open and has its money', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { account } = await spine.tenant(`closing-${round}`, '3');
      expect((await admin(at(account, '/freeze'), reason)).status).toBe(200);
      const remainder = { remainder: 'paid_out', amount_usd: 3, reference: `race-${engine}-${round}` };
      const [closed] = await Promise.all([
        admin(at(account, '/close'), { ...reason, ...remainder }),
        admin(at(account, '/unfreeze'), reason, gateways[1]),
      ]);
      const { data } = await admin(at(account), undefined, spine, 'GET');
      const left = await availableOf(account);
      expect([data['state'], left, closed.status]).toEqual(
        data['state'] === 'closed' ? ['closed', 0n, 200] : ['open', 3_000_000n, 422],
      );
    }
  });

  it('an account is closed twice at once, with the remainder taken once', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { account } = await spine.tenant(`twice-${round}`, '3');
      await admin(at(account, '/freeze'), reason);
      const close = (index: number) => {
        const remainder = { remainder: 'written_off', amount_usd: 3, reference: `twice-${engine}-${round}-${index}` };
        return admin(at(account, '/close'), { ...reason, ...remainder }, gateways[index as 0 | 1]);
      };
      const answers = await Promise.all([close(0), close(1)]);
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
      expect(await availableOf(account)).toBe(0n);
    }
  });

  it('money that arrives at a closed account is not taken under the reference of its closing', async () => {
    const { account } = await spine.tenant('arriving', '3');
    await admin(at(account, '/freeze'), reason);
    const close = (reference: string) =>
      admin(at(account, '/close'), { ...reason, remainder: 'paid_out', amount_usd: 3, reference });
    expect((await close(`first-${engine}`)).status).toBe(200);
    expect((await close(`first-${engine}`)).status).toBe(200);
    await admin(at(account, '/credit'), { amount_usd: 3, reference: `late-${engine}` });
    expect(await close(`first-${engine}`)).toMatchObject({ status: 409, error: { param: 'reference' } });
    expect(await availableOf(account)).toBe(3_000_000n);
    expect((await close(`second-${engine}`)).status).toBe(200);
    expect(await availableOf(account)).toBe(0n);
  });

  it('an account with a running call is not closed, and nothing is taken from it', async () => {
    const { account, key } = await spine.tenant('running', '1');
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = spine.post('/chat/completions', ask('hi !tokens:1'), { authorization: `Bearer ${key}` });
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    await admin(at(account, '/freeze'), reason);
    const left = await availableOf(account);
    const remainder = { remainder: 'paid_out', amount_micro_usdc: Number(left), reference: `running-${engine}` };
    const refused = await admin(at(account, '/close'), { ...reason, ...remainder });
    expect(refused).toMatchObject({ status: 422 });
    expect(refused.error.message).toMatch(/Running calls have locked .* USD: wait until they end/);
    expect(await availableOf(account)).toBe(left);
    open.resolve();
    spine.provider.hold(null);
    expect((await running).status).toBe(200);
    await spine.quiet();
    const rest = { ...remainder, amount_micro_usdc: Number(await availableOf(account)) };
    expect(await admin(at(account, '/close'), { ...reason, ...rest })).toMatchObject({ status: 200 });
  });

  it('a closed account has no sessions of browsers any more, also after it is reopened', async () => {
    const wallet = evmWallet();
    const { nonce } = (await (await fetch(`${spine.url}/auth/nonce`)).json()) as { nonce: string };
    const siwx = Object.values(await signInHeaders(wallet, { nonce }))[0]!;
    const signedIn = await fetch(`${spine.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
      body: JSON.stringify({ siwx }),
    });
    expect(signedIn.status).toBe(200);
    const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
    const look = async () =>
      (await fetch(`${spine.url}/session/balance`, { headers: { cookie, 'x-tollgate-web': '1' } })).status;
    expect(await look()).toBe(200);
    const { account } = wallet;
    await admin(at(account, '/freeze'), reason);
    expect(await look()).toBe(200);
    expect((await admin(at(account, '/close'), reason)).status).toBe(200);
    expect([401, 403]).toContain(await look());
    expect((await admin(at(account, '/reopen'), reason)).status).toBe(200);
    // A gateway may know a session for five seconds.
    skew += 6_000;
    expect(await look()).toBe(401);
    expect((await spine.get('/session/balance', { authorization: '', ...(await signInHeaders(wallet)) })).status).toBe(
      200,
    );
  });

  it('a payout is booked once by its reference, however many gateways book it, and taken back once', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { providerId } = solanaWallet();
      const earned = { id: `earned-${engine}-${round}`, from: treasuryOf('operator'), to: earningsOf(providerId) };
      await spine.app.ledger.transfer({ ...earned, amount: 3_000_000n, memo: '' });
      const payouts = `/providers/${providerId}/payouts`;
      const booked = { amount_usd: 2, reference: `SEPA-${engine}-${round}` };
      const left = async () => (await spine.app.ledger.balance(earningsOf(providerId)))!.available;
      const both = (path: string, body: object) =>
        Promise.all([...gateways, ...gateways].map((gateway) => admin(path, body, gateway)));
      const paid = await both(payouts, booked);
      expect(paid.every(({ status }) => status === 200)).toBe(true);
      expect(paid.filter(({ data }) => data['duplicate'] === false)).toHaveLength(1);
      expect(await left()).toBe(1_000_000n);
      const { reference } = booked;
      const undone = await both(`${payouts}/undo`, { ...reason, reference });
      expect(undone.filter(({ status, data }) => status === 200 && data['duplicate'] === false)).toHaveLength(1);
      expect(undone.every(({ status }) => status === 200)).toBe(true);
      expect(await left()).toBe(3_000_000n);
      // Booked again and taken back again at once: the reference is used up.
      const again = await Promise.all([
        admin(payouts, booked, gateways[0]),
        admin(`${payouts}/undo`, { ...reason, reference }, gateways[1]),
        admin(payouts, { ...booked, amount_usd: 1 }, gateways[1]),
      ]);
      expect(again.map(({ status }) => status)).toEqual([409, 200, 409]);
      expect(await left()).toBe(3_000_000n);
    }
  });

  it('no account gets a label that people take for the label of another', async () => {
    const name = (text: string) => `${text}-${engine}`;
    for (const [account, label] of [
      ['muller', 'MÜLLER & Söhne'],
      ['plain', 'Acme Paris'],
      ['other', 'Other'],
    ] as const)
      await admin('/accounts', { name: name(account), label: `${label} ${engine}` });
    const rename = (label: string, gateway = spine) =>
      admin(`/accounts/tollgate:local:${name('other')}`, { label }, gateway, 'PATCH');
    for (const taken of [
      `Müller & söhne ${engine}`,
      `mu\u0308ller & so\u0308hne ${engine}`,
      `ACME  \u00a0paris ${engine}`,
      `Acme \u200bParis ${engine}`,
      `Ac\u00adme Paris ${engine}`,
      // Cyrillic а and с.
      `\u0410cme Paris ${engine}`,
      `A\u0441me Paris ${engine}`,
      `Acme Paris\u202e ${engine}`,
    ])
      expect(await rename(taken), JSON.stringify(taken)).toMatchObject({ status: 422, error: { param: 'label' } });
    expect(await rename(`Акме Париж ${engine}`)).toMatchObject({ status: 200 });
    // Two accounts ask for one label at once: one has it.
    for (let round = 0; round < ROUNDS; round += 1) {
      const label = `Raced ${engine} ${round}`;
      const answers = await Promise.all([
        admin(`/accounts/tollgate:local:${name('other')}`, { label }, gateways[0], 'PATCH'),
        admin(`/accounts/tollgate:local:${name('plain')}`, { label: label.toUpperCase() }, gateways[1], 'PATCH'),
      ]);
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 422]));
    }
  });
});
