import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Generation, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

interface Usage {
  readonly data: readonly {
    readonly tag: string | null;
    readonly requests: number;
    readonly cost_micro_usdc: number;
  }[];
  readonly totals: { readonly requests: number; readonly cost_micro_usdc: number };
  readonly group_by: readonly string[];
}

describe.each(ENGINES)('what a consumer names its calls, on %s', (engine) => {
  let spine: Spine;
  let drop = async () => {};
  let key: string;
  let account: string;
  beforeAll(async () => {
    const toml = `${UNHURRIED}\n[analytics]\nevery_ms = 50\n`;
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      drop = fresh.drop;
      spine = await startSpine({ databaseUrl: fresh.url, toml });
    } else spine = await startSpine({ toml });
    ({ key, account } = await spine.tenant('acme', '5'));
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
  });

  const called = async (headers: Record<string, string>, more: object = {}) => {
    const answer = await spine.post('/chat/completions', ask('hello', more), {
      authorization: `Bearer ${key}`,
      ...headers,
    });
    const text = await answer.text();
    if (answer.status !== 200) return { status: answer.status, text, tags: null, cost: 0 };
    const call = (await spine.generation(answer.headers.get('x-generation-id'), key)) as Generation & {
      readonly tags: Readonly<Record<string, string>>;
    };
    return { status: answer.status, text, tags: call.tags, cost: call.cost_micro_usdc };
  };
  const usage = async (query: string) =>
    (await (await spine.get(`/analytics/own?${query}`, { authorization: `Bearer ${key}` })).json()) as Usage;

  it('is in the record, from headers first and then from metadata', async () => {
    expect((await called({ 'x-tollgate-tags': 'team=blue, feature = search' })).tags).toEqual({
      team: 'blue',
      feature: 'search',
    });
    expect(
      (await called({ 'x-tollgate-tags': 'team=blue' }, { metadata: { team: 'red', run: 'r-1', n: 7, ä: 'x' } })).tags,
    ).toEqual({ team: 'blue', run: 'r-1' });
    expect(
      (await called({ 'x-litellm-tags': 'nightly,team:red' }, { metadata: { tags: ['slow', 'job:7', 8] } })).tags,
    ).toEqual({ nightly: 'true', team: 'red', slow: 'true', job: '7' });
    expect((await called({})).tags).toEqual({});
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`t${index}`, 'x']));
    expect(Object.keys((await called({}, { metadata: many })).tags!)).toHaveLength(8);
    expect(await spine.faults()).toEqual([]);
  });

  it('is refused by name if a header has none, and nothing is called', async () => {
    const before = spine.provider.log.length;
    for (const wrong of ['team', 'team=', '=blue', '1team=blue', `team=${'x'.repeat(65)}`, 'a b=c', 'a=1,b']) {
      const answer = await called({ 'x-tollgate-tags': wrong });
      expect([wrong, answer.status]).toEqual([wrong, 400]);
      expect(answer.text).toContain('x-tollgate-tags is name=value pairs');
    }
    const nine = Array.from({ length: 9 }, (_, index) => `t${index}=x`).join(',');
    expect((await called({ 'x-tollgate-tags': nine })).text).toContain('at most 8 tags');
    expect(spine.provider.log.length).toBe(before);
  });

  it('groups the spending, and the groups are all that was spent', async () => {
    const costs = new Map<string | null, number>();
    for (const [team, text] of [
      ['blue', 'a'],
      ['red', 'b'],
      ['blue', 'c'],
      [null, 'd'],
    ] as const) {
      const { cost } = await called(team === null ? {} : { 'x-tollgate-tags': `squad=${team}` }, {
        messages: [{ role: 'user', content: `${text} !tokens:9` }],
      });
      costs.set(team, (costs.get(team) ?? 0) + cost);
    }
    const spent = async () => {
      const credits = await spine.get('/credits', { authorization: `Bearer ${key}` });
      const { data } = (await credits.json()) as { readonly data: { readonly total_usage: number } };
      return Math.round(data.total_usage * 1e6);
    };
    const all = await spent();
    await expect
      .poll(async () => (await usage('group_by=month')).totals.cost_micro_usdc, { timeout: atThisLoad(20_000) })
      .toBe(all);
    for (const query of ['group_by=tag:squad', 'group_by=month,model,tag:squad']) {
      const { data, totals, group_by } = await usage(query);
      expect(group_by.at(-1)).toBe('tag:squad');
      expect(totals.cost_micro_usdc).toBe(all);
      const byTag = new Map(data.map(({ tag, cost_micro_usdc: cost }) => [tag, cost]));
      expect([byTag.get('blue'), byTag.get('red')]).toEqual([costs.get('blue'), costs.get('red')]);
      expect(byTag.size).toBe(3);
    }
    const file = await spine.get('/analytics/own?group_by=tag:squad&format=csv', { authorization: `Bearer ${key}` });
    expect((await file.text()).split('\r\n')[0]).toMatch(/^tag,requests,/);
    for (const wrong of ['tag:', 'tag:a,tag:b']) {
      const refused = await spine.get(`/analytics/own?group_by=${wrong}`, { authorization: `Bearer ${key}` });
      expect([wrong, refused.status]).toEqual([wrong, 400]);
    }
    const before = await usage('group_by=tag:squad');
    const rebuilt = await fetch(`${spine.origin}/admin/v1/analytics/rebuild`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.adminKey}` },
    });
    expect(rebuilt.status).toBe(202);
    // The old sums stay until the first part replaces them and notes its place in the journal.
    await expect
      .poll(() => spine.app.database.query({ name: 'test/cursors', text: 'SELECT chain FROM analytics_cursors' }), {
        timeout: atThisLoad(20_000),
      })
      .toHaveLength(1);
    await expect.poll(() => usage('group_by=tag:squad'), { timeout: atThisLoad(20_000) }).toEqual(before);
    expect(await spine.faults()).toEqual([]);
    const operators = await fetch(
      `${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/usage?group_by=tag:squad`,
      { headers: { authorization: `Bearer ${spine.adminKey}` } },
    );
    expect(await operators.json()).toEqual(before);
  });

  it('is what the operator sees of all customers, by customer, month and time zone', async () => {
    const other = await spine.tenant('globex', '5');
    const tagged = await spine.post('/chat/completions', ask('hello'), {
      authorization: `Bearer ${other.key}`,
      'x-tollgate-tags': 'squad=blue',
    });
    expect(tagged.status).toBe(200);
    const { cost_micro_usdc: cost } = await spine.generation(tagged.headers.get('x-generation-id'), other.key);
    await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ label: 'Acme Ltd' }),
    });
    const all = async (query: string) => {
      const answer = await fetch(`${spine.origin}/admin/v1/usage?${query}`, {
        headers: { authorization: `Bearer ${spine.adminKey}` },
      });
      return { status: answer.status, text: await answer.text() };
    };
    const read = async (query: string) =>
      JSON.parse((await all(query)).text) as {
        readonly data: readonly Readonly<Record<string, string | number | null>>[];
        readonly totals: Usage['totals'];
      };
    const own = (await usage('group_by=month')).totals.cost_micro_usdc;
    await expect
      .poll(async () => (await read('')).totals.cost_micro_usdc, { timeout: atThisLoad(20_000) })
      .toBe(own + cost);
    const ofCustomers = (await read('')).data;
    expect(ofCustomers.map((row) => [row['account'], row['account_label'], row['cost_micro_usdc']])).toEqual([
      [account, 'Acme Ltd', own],
      [other.account, null, cost],
    ]);
    for (const zone of ['UTC', 'Asia/Kathmandu']) {
      const { data, totals } = await read(`group_by=month,account,key,tag:squad&time_zone=${zone}`);
      expect(totals.cost_micro_usdc).toBe(own + cost);
      expect(data.filter((row) => row['account'] === other.account)).toMatchObject([
        { tag: 'blue', cost_micro_usdc: cost, key: other.hash, month: expect.stringMatching(/^\d{4}-\d\d$/) as string },
      ]);
      const teams = data.filter((row) => row['account'] === account);
      expect(new Set(teams.map((row) => row['tag']))).toEqual(new Set(['blue', 'red', null]));
      expect(teams.every((row) => typeof row['key_label'] === 'string')).toBe(true);
      expect(teams.reduce((sum, row) => sum + Number(row['cost_micro_usdc']), 0)).toBe(own);
    }
    const file = await all('group_by=account,tag:squad&format=csv');
    expect(file.text.split('\r\n')[0]).toMatch(/^account,account_label,tag,requests,/);
    const wrong = await all('group_by=customer');
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('account, model')]);
    // The groups of one account do not have it.
    expect((await spine.get('/analytics/own?group_by=account', { authorization: `Bearer ${key}` })).status).toBe(400);
    expect(await spine.faults()).toEqual([]);
  });

  it('is found by the audit if a tag has more than the account', async () => {
    await spine.app.database.query({ name: 'test/tags', text: 'UPDATE tag_days SET charged = charged + 1000000000' });
    expect(await spine.faults()).toMatchObject([
      { name: 'analytics', detail: expect.stringContaining('of the tag') as string },
    ]);
  });
});
