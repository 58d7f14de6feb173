import { OpenRouter } from '@openrouter/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES } from '../../support/engines.ts';
import { MODEL } from '../../support/spine.ts';
import { openFigures, TODAY, type FiguresWorld } from './figures-world.ts';

interface Own {
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly totals: Readonly<Record<string, unknown>>;
  readonly [name: string]: unknown;
}

const SUMS = {
  prompt_tokens: 10,
  completion_tokens: 5,
  reasoning_tokens: 0,
  cached_tokens: 0,
  total_tokens: 15,
  images: 0,
  seconds: 0,
};

describe.each(ENGINES)('an account sees its own figures, %s', (engine) => {
  let world: FiguresWorld;
  let account: string;
  let whole: { readonly key: string; readonly hash: string };
  let limited: { readonly key: string; readonly hash: string };
  let provider: string;

  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const own = async (query: string, key = whole.key) =>
    world.read<Own & { error: Record<string, unknown> }>(`/analytics/own?${query}`, bearer(key));

  beforeAll(async () => {
    world = await openFigures(engine);
    const first = await world.spine.tenant('alice', '100');
    account = first.account;
    whole = first;
    limited = await world.spine.tenant('alice', '0', { limit: 5_000_000n, limitReset: 'monthly', label: '=limited' });
    provider = world.spine.app.catalog.offers('model')[0]!.provider.id;
    const mine = { account, service: MODEL, provider };
    await world.calls(TODAY - 40, { ...mine, key: whole.hash });
    await world.calls(TODAY - 1, { ...mine, key: whole.hash, charge: 1_500_000, reasoning: 2 });
    await world.calls(
      TODAY,
      { ...mine, key: limited.hash },
      { ...mine, key: null, primitive: 'tool', service: '=cmd|calc', provider: 'p-gone', charge: 3 },
      { ...mine, key: limited.hash, end: 'release' },
      // A tool that answers with an error.
      { ...mine, key: limited.hash, end: 'free' },
      { account: 'tollgate:local:other', charge: 999 },
    );
    await world.count();
  });
  afterAll(() => world.stop());

  test('by day, every day of the range', async () => {
    const { status, body } = await own('start_date=2026-11-19');
    expect(status).toBe(200);
    expect(body.data).toEqual([
      { ...zero(), date: '2026-11-19' },
      {
        ...zero(),
        date: '2026-11-20',
        requests: 1,
        ...SUMS,
        reasoning_tokens: 2,
        cost_micro_usdc: 1_500_000,
        cost_usd: '1.5',
      },
      {
        ...zero(),
        date: '2026-11-21',
        requests: 2,
        failed: 2,
        ...twice(SUMS),
        cost_micro_usdc: 103,
        cost_usd: '0.000103',
      },
    ]);
    expect(body.totals).toEqual({
      ...zero(),
      requests: 3,
      failed: 2,
      prompt_tokens: 30,
      completion_tokens: 15,
      reasoning_tokens: 2,
      total_tokens: 45,
      cost_micro_usdc: 1_500_103,
      cost_usd: '1.500103',
    });
    expect(body).toMatchObject({ group_by: ['day'], date_range: { start_date: '2026-11-19', end_date: '2026-11-21' } });
  });

  const zero = () => ({
    requests: 0,
    failed: 0,
    ...Object.fromEntries(Object.keys(SUMS).map((name) => [name, 0])),
    cost_micro_usdc: 0,
    cost_usd: '0',
  });
  const twice = (sums: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum * 2]));

  test('by everything, with names of keys and providers', async () => {
    const { body } = await own('group_by=primitive,%20provider,key,model,day&start_date=2026-11-21');
    expect(body['group_by']).toEqual(['day', 'model', 'key', 'provider', 'primitive']);
    const row = { date: '2026-11-21', model: MODEL, key: limited.hash, key_label: '=limited', primitive: 'model' };
    expect(body.data).toEqual([
      {
        ...row,
        provider,
        provider_name: 'Test',
        requests: 1,
        failed: 1,
        ...SUMS,
        cost_micro_usdc: 100,
        cost_usd: '0.0001',
      },
      {
        ...row,
        model: '=cmd|calc',
        key: null,
        key_label: null,
        provider: 'p-gone',
        provider_name: null,
        primitive: 'tool',
        requests: 1,
        failed: 0,
        ...SUMS,
        cost_micro_usdc: 3,
        cost_usd: '0.000003',
      },
      { ...row, provider: null, provider_name: null, ...zero(), failed: 1 },
    ]);
  });

  test.each([
    ['model', () => `model=${encodeURIComponent('=cmd|calc')}`, 1],
    ['key', () => `key=${whole.hash}`, 1],
    ['provider', () => `provider=${provider}`, 2],
    ['primitive', () => 'primitive=tool', 1],
    ['a key of another account', () => `key=${'0'.repeat(64)}`, 0],
  ])('only of one %s', async (_what, query, requests) => {
    expect((await own(query())).body.totals).toMatchObject({ requests });
  });

  test('by week and by month, every period of the range', async () => {
    const { body: months } = await own('group_by=month&start_date=2026-09-30');
    expect(months.data).toMatchObject([
      { month: '2026-09', requests: 0 },
      { month: '2026-10', requests: 1 },
      { month: '2026-11', requests: 3, failed: 2, cost_micro_usdc: 1_500_103 },
    ]);
    expect(Object.keys(months.data[0]!)).not.toContain('date');
    const { body: weeks } = await own('group_by=week,model&start_date=2026-10-01');
    // The 12th of October was a Monday.
    expect(weeks.data.map(({ week, model, requests }) => [week, model, requests])).toEqual([
      ['2026-10-12', MODEL, 1],
      ['2026-11-16', MODEL, 2],
      ['2026-11-16', '=cmd|calc', 1],
    ]);
    const { body: days } = await own('start_date=2026-09-30');
    const { body: both } = await own('group_by=day,month&start_date=2026-11-20');
    expect(both.data.map(({ date, month }) => [date, month])).toEqual([
      ['2026-11-20', '2026-11'],
      ['2026-11-21', '2026-11'],
    ]);
    for (const { totals } of [months, weeks]) expect(totals).toMatchObject({ requests: 4 });
    expect(months.totals).toEqual(days.totals);
    // Today is the 21st of November.
    const { body: month } = await own('group_by=month,model');
    expect(month['date_range']).toEqual({ start_date: '2026-11-01', end_date: '2026-11-21' });
    const file = await world.spine.get('/analytics/own?group_by=month&format=csv', bearer(whole.key));
    expect((await file.text()).split(',', 1)).toEqual(['month']);
  });

  test('the operator sees the same, and the calls', async () => {
    const admin = async (path: string) => {
      const answer = await fetch(`${world.spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}${path}`, {
        headers: bearer(world.spine.adminKey),
      });
      return { status: answer.status, body: (await answer.json()) as Own };
    };
    const query = 'group_by=month,model,key&start_date=2026-09-30';
    expect((await admin(`/usage?${query}`)).body).toEqual((await own(query)).body);
    const { body } = await admin('/calls?limit=2');
    expect(body.data).toHaveLength(2);
    const ids = new Set(body.data.map(({ id }) => id));
    const rest = await admin(`/calls?cursor=${encodeURIComponent(String(body['next_cursor']))}`);
    for (const { id } of rest.body.data) ids.add(id);
    expect(ids.size).toBe(6);
    expect((await admin('/calls?state=released')).body.data).toHaveLength(1);
    expect((await admin('/calls?state=lost')).status).toBe(400);
  });

  test('a limited key sees its own calls alone', async () => {
    expect((await own('', limited.key)).body.totals).toMatchObject({ requests: 1, failed: 2 });
    expect(await own(`key=${whole.hash}`, limited.key)).toMatchObject({
      status: 403,
      body: { error: { type: 'permission_denied', param: 'key' } },
    });
    expect(await world.read('/activity', bearer(limited.key))).toMatchObject({ body: { data: [{ requests: 1 }] } });
    expect((await world.spine.get('/analytics/own', { authorization: '' })).status).toBe(401);
  });

  test.each([
    ['group_by=hour', 'group_by'],
    ['group_by=', 'group_by'],
    ['primitive=chat', 'primitive'],
    ['key=abc', 'key'],
    ['format=xml', 'format'],
    ['start_date=2026-11-22', 'start_date'],
  ])('what is wrong is named: %s', async (query, param) => {
    expect(await own(query)).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test('as CSV, with formulas made harmless', async () => {
    const reply = await world.spine.get(
      '/analytics/own?group_by=model,key&start_date=2026-11-20&format=csv',
      bearer(whole.key),
    );
    expect(reply.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    expect(reply.headers.get('content-disposition')).toBe('attachment; filename="usage-2026-11-20-2026-11-21.csv"');
    const rest = '10,5,0,0,15,0,0';
    expect(await reply.text()).toBe(
      [
        'model,key,key_label,requests,failed,prompt_tokens,completion_tokens,reasoning_tokens,cached_tokens,total_tokens,images,seconds,cost_micro_usdc,cost_usd',
        `${MODEL},${whole.hash},alice,1,0,10,5,2,0,15,0,0,1500000,1.500000`,
        `${MODEL},${limited.hash},'=limited,1,2,${rest},100,0.000100`,
        `'=cmd|calc,,,1,0,${rest},3,0.000003`,
        '',
      ].join('\r\n'),
    );
  });

  test("as OpenRouter's own client reads it", async () => {
    const client = new OpenRouter({ apiKey: whole.key, serverURL: world.spine.url });
    const { data } = await client.analytics.getUserActivity();
    expect(data).toEqual([
      {
        date: '2026-11-20',
        model: MODEL,
        modelPermaslug: MODEL,
        endpointId: `model/${provider}:${MODEL}`,
        providerName: 'Test',
        requests: 1,
        usage: 1.5,
        byokUsageInference: 0,
        promptTokens: 10,
        completionTokens: 5,
        reasoningTokens: 2,
      },
      expect.objectContaining({ date: '2026-11-21', model: MODEL, usage: 0.0001 }),
      expect.objectContaining({ date: '2026-11-21', model: '=cmd|calc', providerName: 'p-gone' }),
    ]);
    expect((await client.analytics.getUserActivity({ date: '2026-11-20' })).data).toHaveLength(1);
    expect((await client.analytics.getUserActivity({ apiKeyHash: limited.hash })).data).toHaveLength(1);
    for (const date of ['2026-10-22', '2026-11-22', '0000-00-00', '2026-02-30', 'today'])
      expect(await world.read(`/activity?date=${date}`, bearer(whole.key))).toMatchObject({
        status: 400,
        body: { error: { param: 'date' } },
      });
  });

  test('over JSON-RPC', async () => {
    const ask = async (method: string, params: object) => {
      const reply = await world.spine.post('/rpc', { jsonrpc: '2.0', id: 1, method, params }, bearer(whole.key));
      return (await reply.json()) as { result: Own & { data: { requests: number } }; error?: { message: string } };
    };
    expect((await ask('analytics/own', { group_by: 'model' })).result.totals).toMatchObject({ requests: 3 });
    expect((await ask('activity/list', { date: '2026-11-20' })).result.data).toHaveLength(1);
    expect((await ask('analytics/public', {})).result).toMatchObject({ total_requests: 4 });
    expect((await ask('analytics/services', {})).result.data).toHaveLength(2);
    expect((await ask('analytics/service', { name: `model/${MODEL}` })).result.data).toMatchObject({ requests: 3 });
    expect((await ask('generations/list', { format: 'csv' })).error?.message).toContain('no files over JSON-RPC');
    expect(await world.spine.faults()).toEqual([]);
  });

  test('50,000 rows and no more, also with those of a tag', async () => {
    const day = TODAY - 60;
    const insert = (table: string, more: { columns?: string; values?: string }, first: number, last: number) => {
      const text = `INSERT INTO ${table} (account, day, key, primitive, service, provider, requests, failed, charged, fee, prompt, completion, reasoning, cached, images, seconds${more.columns ?? ''})
WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last})
SELECT $1, ${day}, 'k' || i, 'model', '', '', ${table === 'tag_days' ? 1 : 2}, 0, 2, 0, 0, 0, 0, 0, 0, 0${more.values ?? ''} FROM n`;
      return world.spine.app.database.batch([{ statement: adHoc(text), params: [account] }]);
    };
    const ask = (groups: string) => own(`start_date=2026-09-22&end_date=2026-09-22&group_by=${groups}`);
    const message = 'The answer would have more than 50000 rows. Request fewer days or fewer groups';
    const refused = { status: 400, body: { error: { param: 'group_by', message } } };
    await insert('usage_days', {}, 1, 50_000);
    const { data, totals } = (await ask('key')).body;
    expect([data.length, totals['requests']]).toEqual([50_000, 100_000]);
    // One of two calls of a key has the tag, so the key has two rows.
    await insert('tag_days', { columns: ', tag, value', values: ", 'team', 'a'" }, 1, 1);
    expect(await ask('key,tag:team')).toMatchObject(refused);
    expect((await ask('key')).status).toBe(200);
    await insert('usage_days', {}, 50_001, 50_001);
    expect(await ask('key')).toMatchObject(refused);
    expect((await ask('model')).body.totals).toMatchObject({ requests: 100_002 });
  });
});
