import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHmac } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../support/wallets.ts';
import { escrowOf, treasuryOf } from '#billing';
import { createBudgetPolls } from '../../src/gateway/webhooks/budget-polls.ts';

// What an account may spend in all, whoever calls for it, and who is told when much of it is spent.

interface Post {
  readonly body: string;
  readonly signature: string | undefined;
}

let spine: Spine;
/** From noon on: no test of a period meets the end of one by chance. */
let skew = 43_200_000 - (Date.now() % 86_400_000);
let receiver: Server;
let drop = async () => {};
let answers: number[] = [];
const posts: Post[] = [];
const alerts: Post[] = [];
const now = () => Date.now() + skew;
beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const signature = request.headers['x-tollgate-signature'] as string | undefined;
    (request.url === '/alerts' ? alerts : posts).push({ body: await text(request), signature });
    response.writeHead(request.url === '/alerts' ? 200 : (answers.shift() ?? 200)).end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => receiver.once('listening', resolve));
  const toml = `${UNHURRIED}${SIGN_IN_TOML}[webhooks]\nallow_private = true\n[alerts]\nurl = "${at('/alerts')}"\n`;
  const fresh = await freshDatabase(inject('postgresUrl'));
  drop = fresh.drop;
  spine = await startSpine({ toml, now, databaseUrl: fresh.url });
});
afterAll(async () => {
  await spine.stop();
  receiver.close();
  await drop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const at = (path: string) => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}`;
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const chat = (headers: Record<string, string>, content = 'hello !tokens:50', more: object = {}) =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ask(content, more)),
  });
const change = async (url: string, key: string, body: object) => {
  const response = await fetch(url, {
    method: 'PATCH',
    headers: { ...bearer(key), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { data: never; error: { message: string } } };
};
const own = (key: string, body: object) => change(`${spine.url}/limits`, key, body);
const ofOperator = (account: string, body: object) =>
  change(`${spine.origin}/admin/v1/accounts/${account}/limits`, spine.adminKey, body);
interface Limits {
  readonly budgets: readonly { readonly usage: number; readonly limit_remaining: number }[];
}
const limitsOf = async (key: string) =>
  ((await (await spine.get('/limits', bearer(key))).json()) as { data: Limits & { operator: Limits } }).data;

const SPEND = adHoc('UPDATE budgets SET spent = spent + $2 WHERE id = $1');

/** A second key of the account. */
const another = async (account: string) =>
  (await spine.app.keys.create({ account, label: 'second', kind: 'live' }))!.text;

describe('a budget of an account', () => {
  test('holds for a wallet that signs in itself', async () => {
    const wallet = solanaWallet();
    const to = escrowOf(wallet.account);
    await spine.app.ledger.transfer({ id: 'wallet', from: treasuryOf('operator'), to, amount: 1_000_000n, memo: '' });
    const headers = await signInHeaders(wallet, {
      issuedAt: new Date(now()).toISOString(),
      expirationTime: new Date(now() + 600_000).toISOString(),
    });
    expect((await chat(headers)).status).toBe(200);
    await ofOperator(wallet.account, { budgets: [{ limit: 0 }] });
    expect((await chat(headers)).status).toBe(402);
  });

  test('is shared by its keys: a call beyond it is refused with what is spent and when it starts anew', async () => {
    const { key, account } = await spine.tenant('shared', '10');
    const second = await another(account);
    expect(await own(key, { budgets: [{ limit: 0.0005, limit_reset: 'daily' }] })).toMatchObject({
      status: 200,
      body: { data: { budgets: [{ limit: 0.0005, limit_reset: 'daily', limit_notify: [50, 80, 100], usage: 0 }] } },
    });
    let passed = 0;
    for (let status = 200; status === 200; passed += 1)
      ({ status } = await chat(bearer(passed % 2 === 0 ? key : second)));
    expect(passed).toBeGreaterThan(2);
    for (const one of [key, second]) {
      const refused = await chat(bearer(one));
      expect(refused.status).toBe(402);
      const resets = `${new Date(now() + 86_400_000).toISOString().slice(0, 10)}T00:00:00.000Z`;
      expect(await refused.json()).toMatchObject({
        error: {
          type: 'insufficient_balance',
          message: expect.stringMatching(
            new RegExp(
              `^Budget of the account is too low for .* of 0\\.0005 USDC are spent .* it is reset at ${resets}\\. An admin or owner of the account raises it, on the page /dashboard/organisation or with PATCH /api/v1/limits$`,
            ),
          ) as string,
        },
        budget: { of: 'account', limit_usd: '0.0005', resets_at: resets },
      });
    }
    skew += 86_400_000;
    expect((await chat(bearer(second))).status).toBe(200);
  });

  test('holds against calls at the same time, to the last micro-USD', async () => {
    const { key, account } = await spine.tenant('crowd', '10');
    const second = await another(account);
    await own(key, { budgets: [{ limit: 0.001 }] });
    const statuses = await Promise.all(
      Array.from(
        { length: 40 },
        async (_, index) =>
          (await chat(bearer(index % 2 === 0 ? key : second), 'hello !tokens:50 !head-delay:30')).status,
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 402]));
    await spine.quiet();
    const [budget] = (await limitsOf(key)).budgets;
    expect(budget!.usage).toBeLessThanOrEqual(0.001);
    expect(budget!.usage + budget!.limit_remaining).toBeCloseTo(0.001, 9);
  });

  test('has what was spent in its period before it was set or changed, and tells of it', async () => {
    const { key } = await spine.tenant('earlier', '10');
    expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    await change(`${spine.url}/limits/webhook`, key, { url: at('/budgets') });
    let spent = 0;
    for (const limit_reset of ['weekly', 'daily', null, 'monthly']) {
      const set = await own(key, { budgets: [{ limit: 0.0001, limit_reset, limit_notify: [] }] });
      const { usage } = (set.body.data as Limits).budgets[0]!;
      expect(usage).toBeGreaterThan(0);
      spent ||= usage;
      expect(usage).toBe(spent);
      expect(await (await chat(bearer(key))).json()).toMatchObject({
        budget: { of: 'account', spent_usd: String(spent) },
      });
    }
    await own(key, { budgets: [{ limit: spent, limit_reset: 'daily', limit_notify: [100] }] });
    await spine.app.notices.run();
    const told = posts.splice(0).map(({ body }) => JSON.parse(body) as object);
    expect(told).toMatchObject([{ percent: 100, spent_usd: String(spent), limit_reset: 'daily' }]);
  });

  test('a failed call gives its part back, and a free one needs none', async () => {
    const { key } = await spine.tenant('frugal', '10');
    await own(key, { budgets: [{ limit: 0.0003 }] });
    for (let i = 0; i < 3; i += 1) expect((await chat(bearer(key), 'hello !status:400')).status).toBe(400);
    expect((await limitsOf(key)).budgets).toMatchObject([{ usage: 0, limit_remaining: 0.0003 }]);
  });

  test('of the operator holds beside that of the owner, who cannot lift it', async () => {
    const { key, account } = await spine.tenant('bounded', '10');
    expect((await ofOperator(account, { budgets: [{ limit: 0 }] })).status).toBe(200);
    await own(key, { budgets: [{ limit: 1_000 }] });
    const refused = await chat(bearer(key));
    expect(await refused.json()).toMatchObject({ budget: { of: 'operator', limit_usd: '0', resets_at: null } });
    expect((await limitsOf(key)).operator).toMatchObject({ budgets: [{ limit: 0 }] });
    await ofOperator(account, { budgets: [] });
    expect((await chat(bearer(key))).status).toBe(200);
  });

  test.each([
    ['two of one reset', { budgets: [{ limit: 1 }, { limit: 2 }] }, 'Two budgets have limit_reset null'],
    ['an amount with too many places', { budgets: [{ limit: 0.0000001 }] }, 'budgets[0].limit'],
    ['a percentage of 0', { budgets: [{ limit: 1, limit_notify: [0] }] }, 'limit_notify'],
    ['a rate of 0', { requests_per_minute: 0 }, 'requests_per_minute'],
  ])('%s is refused', async (_, body, words) => {
    const refused = await own(spine.key, body);
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toContain(words);
  });

  test('is not for a limited key to see or to change', async () => {
    const { key } = await spine.tenant('narrow', '1', { limit: 1_000n });
    expect((await own(key, { budgets: [] })).status).toBe(403);
    expect((await spine.get('/limits', bearer(key))).status).toBe(403);
  });
});

describe('what is spent of a budget is told', () => {
  const told = async () => {
    await spine.app.notices.run();
    return posts.splice(0).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  };

  test('once for each percentage, signed, to the owner and to the operator, though it refuses nothing', async () => {
    const { key, account } = await spine.tenant('soft', '10');
    const secret = 'a secret of sixteen and more';
    expect((await change(`${spine.url}/limits/webhook`, key, { url: at('/budgets'), secret })).status).toBe(200);
    await own(key, { budgets: [{ limit: 0.0002, limit_reset: 'monthly', limit_soft: true, limit_notify: [50, 200] }] });
    expect(await told()).toEqual([]);
    expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    await spine.app.notices.run();
    const [{ body, signature }] = posts.splice(0) as [Post];
    expect(JSON.parse(body)).toMatchObject({
      event: 'budget.reached',
      account,
      of: 'account',
      percent: 50,
      limit_usd: '0.0002',
      limit_reset: 'monthly',
      limit_soft: true,
    });
    const [, seconds, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature!)!;
    expect(createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')).toBe(digest);
    for (let i = 0; i < 3; i += 1) expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    expect((await told()).map(({ percent }) => percent)).toEqual([200]);
    expect(await told()).toEqual([]);
    const listed = (await (await spine.get('/limits/notices', bearer(key))).json()) as { data: object[] };
    expect(listed.data).toMatchObject([
      { percent: 200, state: 'told' },
      { percent: 50, state: 'told' },
    ]);
    await ofOperator(account, { budgets: [{ limit: 0.0002, limit_soft: true, limit_notify: [50] }] });
    expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    expect(await told()).toMatchObject([{ of: 'operator', percent: 50 }]);
    const toldOperator = () =>
      alerts
        .map(({ body: one }) => (JSON.parse(one) as { readonly message: string }).message)
        .filter((message) => message.endsWith(account));
    await expect.poll(toldOperator).toEqual([`a budget is spent to 50 %: operator of ${account}`]);
  });

  test('again to a webhook that failed, also of a key, and of the last calls of a period', async () => {
    const { key, account } = await spine.tenant('late', '10');
    await change(`${spine.url}/limits/webhook`, key, { url: at('/budgets') });
    const made = (await spine.app.keys.create({
      account,
      label: 'robot',
      kind: 'live',
      limit: 100n,
      limitReset: 'daily',
      limitSoft: true,
      limitNotify: [100],
    }))!;
    const midnight = Math.ceil(now() / 86_400_000) * 86_400_000;
    skew += midnight - now() - 60_000;
    expect((await chat(bearer(made.text))).status).toBe(200);
    await spine.quiet();
    skew += 75_000;
    answers = [500, 302];
    expect(await told()).toMatchObject([{ of: 'key', key: { hash: made.record.hash, name: 'robot' }, percent: 100 }]);
    for (const pause of [31_000, 61_000]) {
      expect(await told()).toEqual([]);
      skew += pause;
      expect(await told()).toMatchObject([{ of: 'key', percent: 100 }]);
    }
    skew += 3_600_000;
    expect(await told()).toEqual([]);
    // Back to noon.
    skew += 39_600_000;
  });

  test('but not of a soft limit whose percentages are null', async () => {
    const { key } = await spine.tenant('told-nothing', '10');
    const made = async (body: object) => {
      const response = await spine.post('/keys', { limit: 0.0001, limit_soft: true, ...body }, bearer(key));
      return ((await response.json()) as { data: { limit_notify: number[] | null } }).data.limit_notify;
    };
    expect(await made({ limit_notify: null })).toBe(null);
    expect(await made({ limit_notify: [] })).toBe(null);
    expect(await made({})).toEqual([50, 80, 100]);
  });

  test('at the percentages that were set, also if a change says again that the limit is soft', async () => {
    const { account, hash } = await spine.tenant('told-at-90', '10', { limit: 100n });
    const notifyAfter = async (body: object) => {
      const url = `${spine.origin}/admin/v1/accounts/${account}/keys/${hash}`;
      const { data } = (await change(url, spine.adminKey, body)).body;
      return (data as { limit_notify: number[] | null }).limit_notify;
    };
    expect(await notifyAfter({ limit_soft: true })).toEqual([50, 80, 100]);
    expect(await notifyAfter({ limit_notify: [90] })).toEqual([90]);
    expect(await notifyAfter({ limit_soft: true, limit: 5 })).toEqual([90]);
    expect(await notifyAfter({ limit_notify: null })).toBe(null);
    expect(await notifyAfter({ limit_soft: true })).toBe(null);
    expect(await notifyAfter({ limit_soft: false })).toBe(null);
    expect(await notifyAfter({ limit_soft: true, limit_notify: [70] })).toEqual([70]);
  });

  test('to the operator of a limit that it set for a key, until the account sets another', async () => {
    const { key, account } = await spine.tenant('given', '10');
    const url = `${spine.origin}/admin/v1/accounts/${account}/keys`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...bearer(spine.adminKey), 'content-type': 'application/json' },
      body: JSON.stringify({ limit: 0.0001, limit_soft: true, limit_notify: [100] }),
    });
    const made = (await response.json()) as { key: string; data: { hash: string; limit_set_by: string } };
    expect(made.data.limit_set_by).toBe('operator');
    expect((await chat(bearer(made.key))).status).toBe(200);
    await spine.quiet();
    await told();
    const toldOperator = () =>
      alerts
        .map(({ body }) => JSON.parse(body) as { message: string })
        .filter(({ message }) => message.endsWith(account));
    await expect.poll(toldOperator).toMatchObject([{ message: `a budget is spent to 100 %: key of ${account}` }]);

    const own = (body: object) => change(`${spine.url}/keys/${made.data.hash}`, key, body);
    expect(await own({ name: 'renamed', limit_notify: [90] })).toMatchObject({
      body: { data: { limit_set_by: 'operator' } },
    });
    expect(await own({ limit: 0.0002 })).toMatchObject({ body: { data: { limit_set_by: 'account' } } });
    for (let i = 0; i < 2; i += 1) expect((await chat(bearer(made.key))).status).toBe(200);
    await spine.quiet();
    await told();
    const listed = (await (await spine.get('/limits/notices', bearer(key))).json()) as { data: object[] };
    expect(listed.data).toMatchObject([
      { percent: 90, key: { limit_set_by: 'account' } },
      { percent: 100, key: { limit_set_by: 'operator' } },
    ]);
    expect(await own({ limit: null })).toMatchObject({ body: { data: { limit: null, limit_set_by: null } } });
    expect(toldOperator()).toHaveLength(1);
  });
});

describe('rates', () => {
  const statuses = async (headers: Record<string, string>, count: number) => {
    const seen: number[] = [];
    for (let i = 0; i < count; i += 1) seen.push((await fetch(`${spine.url}/session/balance`, { headers })).status);
    return seen;
  };

  test('of a key lower what the gateway gives, in its headers too', async () => {
    const { key } = await spine.tenant('slow', '1', { requestsPerMinute: 3 });
    expect(await statuses(bearer(key), 4)).toEqual([200, 200, 200, 429]);
    const refused = await spine.get('/session/balance', bearer(key));
    expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('3');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('of an account are shared by its keys', async () => {
    const { key, account } = await spine.tenant('together', '1');
    const second = await another(account);
    await own(key, { requests_per_minute: 4 });
    expect(await statuses(bearer(key), 2)).toEqual([200, 200]);
    expect(await statuses(bearer(second), 3)).toEqual([200, 200, 429]);
    const refused = await spine.get('/session/balance', bearer(key));
    expect(refused.status).toBe(429);
    expect(refused.headers.get('x-ratelimit-limit-requests')).toBe('4');
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringContaining('4 requests per minute of the account') as string },
    });
  });

  test('of tokens count what the calls of all keys used', async () => {
    const { key, account } = await spine.tenant('wordy', '1');
    const second = await another(account);
    await ofOperator(account, { tokens_per_minute: 2 });
    expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    const refused = await chat(bearer(second));
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringContaining('2 tokens per minute of the account') as string },
    });
  });
});

describe('what is spent while this gateway does not look is told by another', () => {
  beforeAll(() => spine.app.notices.close());

  test('of a call that is settled long after the end of its period, also by a gateway that has just started', async () => {
    const { key, account } = await spine.tenant('night', '10');
    await own(key, { budgets: [{ limit: 0.0003, limit_reset: 'daily', limit_notify: [50, 100] }] });
    expect((await chat(bearer(key))).status).toBe(200);
    await spine.quiet();
    const budget = `account:${account}:daily-${new Date(now()).toISOString().slice(0, 10)}`;
    skew += 2 * 86_400_000;
    // What a call that took so long is charged while no gateway looks.
    await spine.app.database.query(SPEND, [budget, 200n]);
    const seen: object[] = [];
    const started = createBudgetPolls({
      database: spine.app.database,
      now,
      onNotice: (body, isOperators) => seen.push({ ...body, isOperators }),
    });
    await started();
    expect(seen.at(-1)).toMatchObject({
      account,
      of: 'account',
      percent: 100,
      limit_usd: '0.0003',
      isOperators: false,
    });
    seen.length = 0;
    await createBudgetPolls({ database: spine.app.database, now, onNotice: (body) => seen.push(body) })();
    expect(seen).toEqual([]);
    await spine.app.database.query(SPEND, [budget, -200n]);
  });

  test('of a limit that is lowered after the end of a period nothing is told of that period', async () => {
    const { key, account } = await spine.tenant('lowered', '10');
    const set = (limit: number) => own(key, { budgets: [{ limit, limit_reset: 'daily', limit_notify: [100] }] });
    const limited = await spine.tenant('lowered-key', '10', { limit: 300n, limitReset: 'daily', limitNotify: [100] });
    await set(0.0003);
    for (const caller of [key, limited.key]) expect((await chat(bearer(caller))).status).toBe(200);
    await spine.quiet();
    const ofBoth = async () => {
      const all: { readonly account: string; readonly limit_usd: string }[] = [];
      const onNotice = (body: object) => void all.push(body as (typeof all)[number]);
      await createBudgetPolls({ database: spine.app.database, now, onNotice })();
      return all.filter((body) => body.account === account || body.account === limited.account);
    };
    skew += 86_400_000;
    await set(0.0001);
    await spine.app.keys.update(limited.account, limited.hash, { limit: 100n });
    expect(await ofBoth()).toEqual([]);
    // What is set anew without being changed stays as old as it was.
    skew += 86_400_000;
    await set(0.0001);
    await spine.app.keys.update(limited.account, limited.hash, { limit: 100n, label: 'new name' });
    const yesterday = new Date(now() - 86_400_000).toISOString().slice(0, 10);
    const late = adHoc('INSERT INTO budgets (id, spent, locked) VALUES ($1, $2, 0)');
    const undo = adHoc('DELETE FROM budgets WHERE id = $1');
    const budgets = [`account:${account}:daily-${yesterday}`, `${limited.hash}:daily-${yesterday}`];
    for (const budget of budgets) await spine.app.database.query(late, [budget, 150n]);
    expect((await ofBoth()).map((body) => body.limit_usd)).toEqual(['0.0001', '0.0001']);
    for (const budget of budgets) await spine.app.database.query(undo, [budget]);
  });
});
