import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { begin, chatLine, clientAt, ended } from '../openai/batches/support/batch-client.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A budget of the calls with one tag: the account's, or the operator's.

interface TagBudget {
  readonly tag: string;
  readonly usage: number;
  readonly limit_remaining: number;
  readonly resets_at: string;
}
type Limits = { readonly tag_budgets: readonly TagBudget[] };

describe.each(ENGINES)('the budget of a tag, on %s', (engine) => {
  let spine: Spine;
  /** Another gateway of the same database; with the embedded one the same gateway. */
  let other: Spine;
  let drop = async () => {};
  let tools: RawMcp;
  /** From noon of the 15th on: no test meets the end of a period by chance. */
  const skew = Date.parse(`${new Date().toISOString().slice(0, 8)}15T12:00:00Z`) - Date.now();
  let moved = 0;
  const now = () => Date.now() + skew + moved;
  beforeAll(async () => {
    tools = await startRawMcp(
      async () => '{"resultType":"complete","content":[{"type":"text","text":"noon"}]}',
      ['{"name":"hour","inputSchema":{"type":"object"}}'],
    );
    const toml = `${UNHURRIED}[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
    if (engine === 'postgres') {
      const fresh = await freshDatabase(inject('postgresUrl'));
      spine = await startSpine({ databaseUrl: fresh.url, toml, now });
      other = await startSpine({ databaseUrl: fresh.url, toml, now });
      drop = async () => {
        await other.stop();
        await fresh.drop();
      };
    } else other = spine = await startSpine({ toml, now });
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
    await tools.close();
  });
  afterEach(async () => {
    expect(await spine.faults()).toEqual([]);
  });

  const post = (at: Spine, key: string, tag: string | null, path: string, body: object) =>
    at.post(path, body, {
      authorization: `Bearer ${key}`,
      ...(tag === null ? {} : { 'x-tollgate-tags': tag }),
    });
  const chat = async (at: Spine, key: string, tag: string | null, content = 'hello !tokens:50') => {
    const answer = await post(at, key, tag, '/chat/completions', ask(content));
    const text = await answer.text();
    if (answer.status !== 200) return { status: answer.status, text, cost: 0 };
    const call = await at.generation(answer.headers.get('x-generation-id'), key);
    return { status: 200, text, cost: call.cost_micro_usdc };
  };
  const change = async (url: string, key: string, body: object) => {
    const answer = await fetch(url, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: (await answer.json()) as { data: Limits; error?: { message: string } } };
  };
  const limitsOf = async (key: string) =>
    (
      (await (await spine.get('/limits', { authorization: `Bearer ${key}` })).json()) as {
        data: Limits & { operator: Limits };
      }
    ).data;
  const usd = (micro: number) => micro / 1e6;

  it('counts what such calls spent before it was set, and refuses those beyond it, by its name, with the remedy', async () => {
    const { key, account } = await spine.tenant('acme', '5');
    const first = await chat(spine, key, 'feature=search');
    await chat(spine, key, 'feature=ads');
    await chat(spine, key, null);
    const set = await change(`${spine.url}/limits`, key, {
      tag_budgets: [{ tag: 'feature=search', limit: usd(first.cost), limit_reset: 'monthly' }],
    });
    expect(set).toMatchObject({
      status: 200,
      body: {
        data: {
          budgets: [],
          tag_budgets: [{ tag: 'feature=search', limit: usd(first.cost), usage: usd(first.cost), limit_remaining: 0 }],
        },
      },
    });
    const before = spine.provider.log.length;
    const refused = await chat(spine, key, 'feature=search');
    expect(refused.status).toBe(402);
    expect(JSON.parse(refused.text)).toMatchObject({
      error: {
        type: 'insufficient_balance',
        message: expect.stringMatching(
          /Budget of the account for calls tagged feature=search is too low for estimated cost: .*An admin or owner of the account raises it/,
        ) as string,
      },
      budget: { of: 'account', tag: 'feature=search', locked_usd: '0' },
    });
    expect(spine.provider.log.length).toBe(before);
    for (const tag of ['feature=ads', 'feature=search2', 'team=search', null])
      expect((await chat(spine, key, tag)).status).toBe(200);
    const fixed = await spine.app.keys.create({
      account: account,
      label: 'fixed',
      kind: 'live',
      tags: { feature: 'search' },
    });
    expect((await chat(spine, fixed!.text, null)).status).toBe(402);
  });

  it('holds on every wire', async () => {
    const { key, account } = await spine.tenant('wires', '5');
    const put = await change(`${spine.origin}/admin/v1/accounts/${account}/limits`, spine.adminKey, {
      tag_budgets: [{ tag: 'feature=a search!', limit: 0.000001, limit_reset: 'daily' }],
    });
    expect(put.status).toBe(200);
    const model = ask('hello').model;
    const wires: readonly (readonly [string, object])[] = [
      ['/chat/completions', ask('hello')],
      ['/chat/completions', ask('hello', { stream: true })],
      ['/messages', { model, max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] }],
      ['/responses', { model, input: 'hello' }],
      ['/completions', { model, prompt: 'hello' }],
    ];
    for (const [path, body] of wires) {
      const refused = await post(spine, key, 'feature=a search!', path, body);
      expect([path, refused.status]).toEqual([path, 402]);
      expect(await refused.text()).toContain(
        "The operator's budget for the account for calls tagged feature=a search!",
      );
      const passed = await post(spine, key, 'feature=other', path, body);
      expect([path, passed.status]).toEqual([path, 200]);
      await passed.text();
    }
    expect((await limitsOf(key)).operator.tag_budgets).toMatchObject([{ tag: 'feature=a search!', usage: 0 }]);
  });

  it('holds for calls that are paid from one lock: batches, tools that the gateway calls, and entries of JSON-RPC', async () => {
    const { key } = await spine.tenant('wholes', '5');
    const tag = 'team=x';
    const limited = { tag_budgets: [{ tag, limit: 0.000001, limit_reset: 'daily' }] };
    expect((await change(`${spine.url}/limits`, key, limited)).status).toBe(200);
    const before = spine.provider.log.length;
    const answers: unknown[] = [];
    const metadata = { team: 'x' };
    const kit = { tools: [{ type: 'mcp', service: 'kit' }] };
    const entry = { jsonrpc: '2.0', id: 1, method: 'chat/completions', params: ask('hello') };
    for (const [header, path, body] of [
      [tag, '/rpc', entry],
      [tag, '/rpc', [entry]],
      [tag, '/chat/completions', ask('hello', kit)],
      [null, '/chat/completions', ask('hello', { ...kit, metadata })],
    ] as const)
      answers.push(await (await post(spine, key, header, path, body)).json());
    const text = 'for calls tagged team=x is too low';
    expect(answers.map((answer) => JSON.stringify(answer).includes(text))).toEqual([true, true, true, true]);

    const headers = (named: string | null) => (named === null ? {} : { headers: { 'x-tollgate-tags': named } });
    const client = clientAt(`${spine.origin}/v1`, key);
    const batch = async (named: string | null, ofBatch: object, ofLine: object) => {
      const lines = [1, 2, 3].map((n) => chatLine(`line-${n}`, 'hello !tokens:5', ofLine));
      const { id } = await begin(client, lines, ofBatch, headers(named));
      const { status, errors } = await ended(client, id);
      return [status, errors?.data?.[0]?.message];
    };
    const tooLow = ['failed', expect.stringContaining(text)];
    expect(await batch(tag, {}, {})).toEqual(tooLow);
    // The lock of the whole counts in no budget of a tag that some of its lines have.
    const whole = expect.stringContaining('The tag team=x has a budget, which does not count this batch: give it to');
    expect(await batch(null, {}, { metadata })).toEqual(['failed', whole]);
    expect(spine.provider.log.length).toBe(before);
    expect(await limitsOf(key)).toMatchObject({ tag_budgets: [{ tag, usage: 0 }] });

    const raised = { tag_budgets: [{ tag, limit: 1, limit_reset: 'daily' }] };
    expect((await change(`${spine.url}/limits`, key, raised)).status).toBe(200);
    expect(await batch(tag, {}, { metadata })).toEqual(['completed', undefined]);
    // The metadata of a batch name the batch, and not its lines.
    expect(await batch('team=y', { metadata }, { metadata: { feature: 'z' } })).toEqual(['completed', undefined]);
    const { data } = (await (await spine.get('/generations', { authorization: `Bearer ${key}` })).json()) as {
      readonly data: readonly { readonly tags: object; readonly cost_micro_usdc: number }[];
    };
    const spent = data.filter(({ tags }) => 'team' in tags && tags.team === 'x').map((call) => call.cost_micro_usdc);
    // The record of the batch itself costs nothing.
    expect(spent.filter((cost) => cost > 0)).toHaveLength(3);
    expect(data.filter(({ tags }) => JSON.stringify(tags) === '{"team":"y","feature":"z"}')).toHaveLength(3);
    const usage = spent.reduce((sum, one) => sum + one, 0) / 1e6;
    expect(await limitsOf(key)).toMatchObject({ tag_budgets: [{ tag, usage }] });
  });

  it('is exact for calls at once, at all gateways together, and starts again', async () => {
    const { key } = await spine.tenant('many', '5');
    const { cost } = await chat(spine, key, null);
    const limit = cost * 5 + 40;
    await change(`${spine.url}/limits`, key, {
      tag_budgets: [{ tag: 'feature=search', limit: usd(limit), limit_reset: 'daily' }],
    });
    moved += 2_000;
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => chat(index % 2 === 0 ? spine : other, key, 'feature=search')),
    );
    const spent = answers.reduce((sum, one) => sum + one.cost, 0);
    expect(spent).toBeLessThanOrEqual(limit);
    expect(answers.map(({ status }) => status)).toContain(402);
    await Promise.all([spine.quiet(), other.quiet()]);
    for (let status = 200; status === 200;) ({ status } = await chat(spine, key, 'feature=search'));
    const [budget] = (await limitsOf(key)).tag_budgets;
    expect(budget!.usage).toBeLessThanOrEqual(usd(limit));
    expect(budget!.usage).toBeGreaterThan(0);
    moved += 86_400_000;
    expect((await chat(other, key, 'feature=search')).status).toBe(200);
    expect((await change(`${spine.url}/limits`, key, { tag_budgets: [] })).body.data.tag_budgets).toEqual([]);
    moved += 2_000;
    for (let call = 0; call < 8; call += 1) expect((await chat(other, key, 'feature=search')).status).toBe(200);
  });

  it('counts by whole names and values, whatever their characters and the other members of a record are', async () => {
    const { key } = await spine.tenant('texts', '5');
    const odd = `a "quoted", {braced} \\ 100%_ value`;
    const texts = async (metadata: Record<string, string>) => {
      const answer = await post(spine, key, null, '/chat/completions', ask('hello', { metadata }));
      expect(answer.status).toBe(200);
      return (await spine.generation(answer.headers.get('x-generation-id'), key)).cost_micro_usdc;
    };
    const cost = await texts({ note: odd });
    await texts({ note: odd.toUpperCase(), other: odd, notes: odd });
    // A tag with the name and the value of another member of a call's record.
    const service = ask('hello').model;
    for (const [tag, calls] of [
      [`note=${odd}`, 1],
      [`service=${service}`, 0],
      ['primitive=model', 0],
    ] as const) {
      const { status, body } = await change(`${spine.url}/limits`, key, {
        tag_budgets: [{ tag, limit: 1, limit_reset: 'monthly' }],
      });
      expect([tag, status, body.data.tag_budgets[0]!.usage]).toEqual([tag, 200, usd(cost * calls)]);
    }
  });

  it('refuses only calls with its tag while its sum cannot be read, and can be changed then', async () => {
    const { key } = await spine.tenant('unread', '5');
    const budget = { tag: 'feature=search', limit: 1, limit_reset: 'monthly' };
    const put = (tag_budgets: object[]) => change(`${spine.url}/limits`, key, { tag_budgets });
    const { database } = spine.app;
    const rename = (from: string, to: string) =>
      database.query({ name: `test/${from}`, text: `ALTER TABLE ${from} RENAME TO ${to}` });
    expect((await put([budget])).status).toBe(200);
    await rename('archived_kept', 'archived_away');
    try {
      moved += 3_000;
      const refused = await chat(spine, key, 'feature=search');
      expect([refused.status, refused.text]).toEqual([
        503,
        expect.stringContaining('of the tag feature=search cannot'),
      ]);
      for (const tag of ['feature=ads', null]) expect([tag, (await chat(spine, key, tag)).status]).toEqual([tag, 200]);
      for (const path of ['/key', '/credits', '/limits'])
        expect([path, (await spine.get(path, { authorization: `Bearer ${key}` })).status]).toEqual([path, 200]);
      expect(await limitsOf(key)).toMatchObject({ tag_budgets: [{ ...budget, limit_remaining: 0 }] });
      expect((await put([{ ...budget, limit: 2 }])).status).toBe(200);
      expect((await chat(spine, key, 'feature=search')).status).toBe(503);
      expect((await put([])).status).toBe(200);
      expect((await chat(spine, key, 'feature=search')).status).toBe(200);
    } finally {
      await rename('archived_away', 'archived_kept');
    }
    expect((await put([budget])).status).toBe(200);
    moved += 3_000;
    expect((await chat(spine, key, 'feature=search')).status).toBe(200);
  });

  it('is refused by name if it is none', async () => {
    const { key } = await spine.tenant('wrong', '5');
    const rule = { tag: 'a=b', limit: 1, limit_reset: 'daily' };
    for (const [body, message] of [
      [[{ ...rule, tag: 'a' }], 'tag_budgets[0].tag is name=value'],
      [[rule, { ...rule, tag: ' a = b' }], 'Two daily budgets are of a=b'],
      [[{ tag: 'a=b', limit: 1 }], 'limit_reset'],
      [[{ ...rule, limit: 0.0000001 }], 'tag_budgets[0].limit'],
    ] as const) {
      const answer = await change(`${spine.url}/limits`, key, { tag_budgets: body });
      expect([answer.status, answer.body.error?.message]).toEqual([400, expect.stringContaining(message)]);
    }
  });
});
