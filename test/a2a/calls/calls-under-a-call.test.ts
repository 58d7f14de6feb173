import { afterAll, expect, test } from 'vitest';
import { formatUsd } from '#billing/amounts';
import { createRunTokens } from '#auth';
import { toolToml } from '../../mcp/calls/modern-post.ts';
import type { RawExchange } from '../../support/a2a-agent/index.ts';
import { until } from '../../support/cluster.ts';
import { MODEL } from '../../support/spine.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { dialIn, offeredModel } from '../../support/dial-in.ts';
import { heldBy, MESSAGE_PRICE, refusalOf, REST, RPC, useCallsWorld, WIRES } from './support/calls-world.ts';
import { asAgent, giftOf, type Gift } from './support/nested.ts';
import { serveRaw, taskResult } from './support/raw-served.ts';

const tools = await startRawMcp(
  () => '{"content":[{"type":"text","text":"3"}],"resultType":"complete"}',
  ['{"name":"add","inputSchema":{"type":"object"}}'],
);
afterAll(() => tools.close());
const calls = useCallsWorld(toolToml({ name: 'calculator', url: tools.url }));

const NESTED = { pricing: 'per_call = 0.001\nnested_max = 0.05' };
const LENT = 50_000n;

/** An agent that does `work` with what it was given, and then ends as it says: `COMPLETED` where it says nothing. */
const working =
  (work: (gift: Gift, exchange: RawExchange) => Promise<string | void>) =>
  async (exchange: RawExchange): Promise<void> => {
    const { request, result } = exchange;
    const { id } = request.params as { readonly id?: string };
    if (id !== undefined) return result(taskResult(id, 'COMPLETED').task);
    const state = (await work(giftOf(exchange).metadata!, exchange)) ?? 'COMPLETED';
    result(taskResult(`worked-${crypto.randomUUID()}`, state));
  };

test.each(WIRES)('an agent that may make calls is given a token for them, and its budget: $name', async (wire) => {
  let seen: ReturnType<typeof giftOf> | undefined;
  const served = await serveRaw(
    calls.world,
    (exchange) => {
      seen = giftOf(exchange);
      if (wire.version === '1.0') return exchange.result(taskResult(`given-${crypto.randomUUID()}`, 'COMPLETED'));
      exchange.result({
        kind: 'task',
        id: `given-${crypto.randomUUID()}`,
        contextId: 'c',
        status: { state: 'completed' },
      });
    },
    NESTED,
  );
  const talk = calls.talk(served.url, wire);
  expect(await calls.spent(() => talk.sent('work', { message: { metadata: { kept: [1, 2] } } }))).toBe(MESSAGE_PRICE);
  expect(seen?.metadata).toMatchObject({ token: seen?.header, budget_usd: '0.05' });
  expect(seen!.header).toMatch(/^svc-run-v1-/);
  const sent = served.agent.asked.at(-1)!.params as { message: { metadata: object } };
  expect(sent.message.metadata).toMatchObject({ kept: [1, 2] });
});

test('an agent that may make none is given nothing, and what a client says of a run does not reach it', async () => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const lie = { 'tollgate/run': { token: 'mine', url: 'http://attacker.example' }, other: 1 };
  for (const wire of WIRES) {
    const talk = calls.talk(url, wire);
    await talk.sent('task a', { message: { metadata: lie }, metadata: lie });
    const request = agent.asked.at(-1)!;
    expect(giftOf({ request }), wire.name).toEqual({ header: undefined, metadata: undefined });
    expect(request.body, wire.name).not.toContain('attacker');
    expect(request.body).toContain('"other":1');
  }
});

test('the consumer names the budget: in metadata or by header, and all of it is locked', async () => {
  const budgets: unknown[] = [];
  const { url } = await serveRaw(
    calls.world,
    working(async (gift) => {
      budgets.push([gift.budget_usd, await calls.locked()]);
    }),
  );
  const talk = calls.talk(url);
  expect(
    await calls.spent(async () => {
      await talk.task('a', { metadata: { 'tollgate/max_cost': '0.25' } });
      await talk.call(
        'SendMessage',
        { message: { messageId: 'by header', role: 'ROLE_USER', parts: [{ text: 'b' }] } },
        { 'x-max-cost': '0.5' },
      );
      await calls.talk(url, REST).task('c', { metadata: { 'tollgate/max_cost': 0.01 } });
    }),
  ).toBe(3n * MESSAGE_PRICE);
  expect(budgets).toEqual([
    ['0.249', 250_000n],
    ['0.499', 500_000n],
    ['0.009', 10_000n],
  ]);
  for (const [max, words] of [
    ['0.0005', /tollgate\/max_cost is 0\.0005 USD, but .* may cost 0\.001 USD/],
    ['-1', /plain decimal/],
    ['1e3', /plain decimal/],
    [{}, /string of USD.*not object/],
    [true, /string of USD.*not boolean/],
    [NaN, /amount|null|decimal/],
  ] as const) {
    const refused = refusalOf(await talk.sent('d', { metadata: { 'tollgate/max_cost': max } }));
    if (Number.isNaN(max)) continue;
    expect(refused?.message, String(max)).toMatch(words);
  }
});

test('an agent finds the responses that it made with its token, and others do not, until its call has ended', async () => {
  const { spine } = calls.world;
  const other = await spine.tenant('beside', '0');
  let made: readonly string[] = [];
  const tokens: string[] = [];
  const show = (id: string, token: string, method = 'GET') =>
    fetch(`${spine.url}/responses/${id}`, { method, headers: { authorization: `Bearer ${token}` } });
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const authorization = `Bearer ${token}`;
      const create = async (more: object) => {
        const body = { model: MODEL, input: 'hi !tokens:3', max_output_tokens: 20, ...more };
        const reply = await spine.post('/responses', body, { authorization });
        return ((await reply.json()) as { id: string }).id;
      };
      const inPlace = await create({});
      const first = await create({ background: true });
      for (const id of [inPlace, first])
        await until(
          async () => /"status":"(completed|incomplete)"/.test(await (await show(id, token)).text()),
          'it ends',
        );
      const next = await create({ background: true, previous_response_id: first });
      await until(async () => (await (await show(next, token)).text()).includes('"cost"'), 'it ends');
      for (const [before] of tokens.entries()) expect((await show(made[before]!, token)).status).toBe(404);
      made = [inPlace, first, next];
      tokens.push(token);
    }),
    NESTED,
  );
  const talk = calls.talk(url);
  await talk.task('a');
  const [inPlace, first, next] = made as [string, string, string];
  // The account of the call sees all of it.
  for (const id of made) expect((await show(id, spine.key)).status).toBe(200);
  for (const id of made) expect((await show(id, other.key)).status).toBe(404);
  expect((await show(first, tokens[0]!)).status).toBe(403);
  // Another call of the same agent does not.
  made = [inPlace, first, next];
  await talk.task('b');
  expect(tokens).toHaveLength(2);
});

test('a model, a tool and another agent, called with the token, are paid from the lock of the call alone', async () => {
  const other = await calls.serve();
  const { spine } = calls.world;
  const during: bigint[] = [];
  const seen: string[] = [];
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const agent = asAgent(spine, token);
      const outcomes = [
        await agent.chat(),
        await agent.tool('calculator'),
        await agent.agent(other.service, 'task nested'),
      ];
      for (const { status, text } of outcomes) expect(status, text).toBe(200);
      seen.push(...outcomes.map(({ text }) => text));
      const { available, locked } = await spine.balance();
      during.push(available, locked);
    }),
    NESTED,
  );
  const before = await spine.balance();
  const reply = await calls.talk(url).sent('work');
  expect(refusalOf(reply)).toBeNull();
  expect(seen[2]).toContain('TASK_STATE_COMPLETED');
  const usage = (JSON.parse(seen[0]!) as { usage: { prompt_tokens: number; completion_tokens: number } }).usage;
  const chat = BigInt(usage.prompt_tokens + 2 * usage.completion_tokens);
  // While it ran, nothing but its own lock was taken from what the consumer has.
  expect(during[0]).toBe(before.available - MESSAGE_PRICE - LENT);
  expect(during[1]! + chat + 2n * MESSAGE_PRICE).toBe(MESSAGE_PRICE + LENT);
  expect(await spine.balance()).toEqual({ available: before.available - 3n * MESSAGE_PRICE - chat, locked: 0n });
  expect(heldBy(reply)['metadata']).toMatchObject({
    'tollgate/generation': { cost: formatUsd(3n * MESSAGE_PRICE + chat), own_cost: '0.001' },
  });
});

test('fifty calls at once cannot take more than the budget', async () => {
  const { spine } = calls.world;
  const outcomes: number[] = [];
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const agent = asAgent(spine, token);
      const all = await Promise.all(Array.from({ length: 50 }, () => agent.tool('calculator')));
      for (const { text } of all) {
        outcomes.push(text.includes('"isError":true') || text.includes('"error"') ? 0 : 1);
      }
    }),
    { pricing: 'per_call = 0.001\nnested_max = 0.01' },
  );
  expect(await calls.spent(() => calls.talk(url).task('work'))).toBe(11n * MESSAGE_PRICE);
  expect(outcomes.reduce((sum, one) => sum + one, 0)).toBe(10);
});

test('when the call is over, its token opens nothing any more', async () => {
  const { spine } = calls.world;
  let token = '';
  const other = await calls.serve();
  const { url } = await serveRaw(
    calls.world,
    working(async (gift) => {
      token = gift.token;
    }),
    NESTED,
  );
  await calls.talk(url).task('work');
  expect(
    await calls.spent(async () => {
      const agent = asAgent(spine, token);
      for (const { status, text } of [
        await agent.chat(),
        await agent.tool('calculator'),
        await agent.agent(other.service, 'task late'),
      ]) {
        expect(text).toMatch(/has ended/);
        expect(status).toBeLessThan(500);
      }
    }),
  ).toBe(0n);
});

test('while its task goes on, so does its token; when it ends, what is left comes back', async () => {
  const { spine } = calls.world;
  let token = '';
  let ended = false;
  const { url } = await serveRaw(
    calls.world,
    async (exchange) => {
      const { id } = exchange.request.params as { readonly id?: string };
      if (id !== undefined) return exchange.result(taskResult('long', ended ? 'COMPLETED' : 'WORKING').task);
      token = giftOf(exchange).metadata!.token;
      exchange.result(taskResult('long', 'WORKING'));
    },
    NESTED,
  );
  const talk = calls.talk(url);
  const before = await spine.balance();
  await talk.task('work');
  expect(await calls.locked()).toBe(MESSAGE_PRICE + LENT);
  expect((await asAgent(spine, token).tool('calculator')).text).toContain('"3"');
  ended = true;
  await talk.get('long');
  expect(await spine.balance()).toEqual({ available: before.available - 2n * MESSAGE_PRICE, locked: 0n });
  expect((await asAgent(spine, token).tool('calculator')).text).toMatch(/has ended/);
});

test('an agent that fails is paid nothing, but the calls that were made for it and were done are paid', async () => {
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      await asAgent(calls.world.spine, token).tool('calculator');
      return 'FAILED';
    }),
    NESTED,
  );
  expect(await calls.spent(() => calls.talk(url).task('work'))).toBe(MESSAGE_PRICE);
});

test('a token that was changed, or made by somebody else, is none; and it does not say whose it is', async () => {
  const { spine } = calls.world;
  const answers: number[] = [];
  let told = '';
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const prefix = 'svc-run-v1-';
      const text = token.slice(prefix.length);
      told = text + Buffer.from(text, 'base64url').toString('latin1');
      const guessed = createRunTokens({ secret: Buffer.alloc(32, 7), now: Date.now });
      const flipped = [0, 1, text.length >> 1, text.length - 2].map(
        (at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1),
      );
      const forged = [
        ...flipped.map((one) => prefix + one),
        guessed.issue({ parent: 'gen-1', account: spine.account, key: null }, Date.now() + 60_000),
        `${token}AAAA`,
        token.slice(0, -4),
        `${prefix}${text.slice(0, 16)}`,
        prefix,
        `${prefix}.`,
        `${prefix}${'a'.repeat(5_000)}`,
        token.toUpperCase(),
      ];
      for (const one of forged) answers.push((await asAgent(spine, one).chat()).status);
      expect((await asAgent(spine, token).tool('calculator')).text).toContain('"3"');
    }),
    NESTED,
  );
  expect(await calls.spent(() => calls.talk(url).task('work'))).toBe(2n * MESSAGE_PRICE);
  expect(answers).toEqual(Array.from({ length: 12 }, () => 401));
  expect(told).not.toContain(spine.account);
  expect(told).not.toContain('tollgate:local');
});

test('a token is for calls alone: not for the account, its keys or its balance, and nobody is a provider by it', async () => {
  const { spine } = calls.world;
  const pages = [
    '/account/balance',
    '/balance',
    '/keys',
    '/key',
    '/credits',
    '/generation?id=x',
    '/generations',
    '/account',
    '/account/keys',
    '/withdrawals',
    '/earnings',
    '/activity',
  ];
  const answers: (readonly [string, number])[] = [];
  let refusedDial: unknown = null;
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const authorization = `Bearer ${token}`;
      for (const page of pages) answers.push([page, (await spine.get(page, { authorization })).status]);
      for (const page of ['/keys', '/account/keys', '/credits', '/withdrawals'])
        answers.push([
          `POST ${page}`,
          (await spine.post(page, { name: 'mine', label: 'mine' }, { authorization })).status,
        ]);
      answers.push(['x-api-key /keys', (await fetch(`${spine.url}/keys`, { headers: { 'x-api-key': token } })).status]);
      refusedDial = await dialIn({
        router: spine.origin,
        apiKey: token,
        services: offeredModel({ url: spine.provider.url, name: 'stolen/model', provider: 'Stolen' }),
      }).catch((error: unknown) => error);
    }),
    NESTED,
  );
  await calls.talk(url).task('work');
  for (const [page, status] of answers)
    expect({ page, status: status === 403 || status === 404 || status === 405 }).toEqual({ page, status: true });
  expect(answers.filter(([, status]) => status === 403).length).toBeGreaterThan(3);
  expect(refusedDial).toBeInstanceOf(Error);
});

test('a run sees the tasks that it began, and none of the account or of another run', async () => {
  const other = await calls.serve();
  const own = await calls.talk(other.url).task('task own');
  const begun: string[] = [];
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const talk = calls.talk(other.url, RPC, token);
      const { id } = await talk.task('task nested');
      expect((await talk.get(id)).state).toBe('completed');
      for (const foreign of [own.id, ...begun]) {
        expect(refusalOf(await talk.call('GetTask', { id: foreign }))?.code).toBe(-32_001);
        expect(refusalOf(await talk.sent('more', { message: { taskId: foreign } }))?.code).toBe(-32_001);
      }
      expect((await talk.call('ListTasks', {})).result()).toMatchObject({ totalSize: 1, tasks: [{ id }] });
      begun.push(id);
    }),
    NESTED,
  );
  for (const text of ['one', 'two']) expect(refusalOf(await calls.talk(url).sent(text))).toBeNull();
  expect(begun).toHaveLength(2);
  // The account sees what was done for it.
  for (const id of begun) expect((await calls.talk(other.url).get(id)).state).toBe('completed');
});

test("what the account's key may not do, its run may not either", async () => {
  const { spine } = calls.world;
  const other = await calls.serve();
  const answers: string[] = [];
  const served = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const agent = asAgent(spine, token);
      answers.push(
        (await agent.agent(other.service, 'task x')).text,
        (await agent.chat()).text,
        (await agent.tool('calculator')).text,
      );
    }),
    NESTED,
  );
  const narrow = await spine.tenant('narrow', '1', { allowedServices: [served.service, 'calculator'] });
  expect(refusalOf(await calls.talk(served.url, RPC, narrow.key).sent('work'))).toBeNull();
  expect(answers[0]).toMatch(/may not use/);
  expect(answers[1]).toMatch(/may not use/);
  expect(answers[2]).toContain('"3"');

  const limited = await spine.tenant('limited', '1', { limit: 52_000n, limitReset: null });
  const talk = calls.talk(served.url, RPC, limited.key);
  expect(heldBy(await talk.sent('fits'))['status']).toMatchObject({ state: 'TASK_STATE_COMPLETED' });
  // Three calls of a tenth of a cent, and what two chats used, are gone of the limit: the next does not fit.
  expect(heldBy(await talk.sent('does not'))['status']).toMatchObject({ state: 'TASK_STATE_INPUT_REQUIRED' });
});

test("an idempotency key of the account is not one of its runs: neither sees, takes or spoils the other's", async () => {
  const { spine } = calls.world;
  const texts: string[] = [];
  const { url } = await serveRaw(
    calls.world,
    working(async ({ token }) => {
      const { status, text } = await asAgent(spine, token).chat(
        'secret question',
        {},
        { 'idempotency-key': 'account-1' },
      );
      texts.push(`${status} ${text}`);
      texts.push(`${(await asAgent(spine, token).chat('poison', {}, { 'idempotency-key': 'account-2' })).status}`);
      texts.push(
        (await asAgent(spine, token).tool('calculator', 'add', { 'tollgate/idempotency-key': 'account-3' })).text,
      );
    }),
    NESTED,
  );
  const chat = (content: string, key: string) =>
    spine.post(
      '/chat/completions',
      { model: 'test/model', messages: [{ role: 'user', content }], max_tokens: 50 },
      { 'idempotency-key': key },
    );
  const first = (await (await chat('secret question', 'account-1')).json()) as { id: string };
  await calls.talk(url).task('work');
  expect(texts[0]).toMatch(/^200 /);
  expect(texts[0]).not.toContain(first.id);
  const second = await chat('mine', 'account-2');
  expect(second.status, await second.text()).toBe(200);
  expect(texts[2]).toContain('"3"');
});

test('runs nest: the budget of the first bounds them all', async () => {
  const { spine } = calls.world;
  let depth = 0;
  const words: string[] = [];
  const served: { service: string; url: string } = await serveRaw(
    calls.world,
    working(async (gift) => {
      depth += 1;
      if (depth > 12) return;
      const { text } = await asAgent(spine, gift.token).agent(served.service, `deeper ${depth}`, {
        metadata: { 'tollgate/max_cost': gift.budget_usd },
      });
      words.push(text);
    }),
  );
  const spent = await calls.spent(() =>
    calls.talk(served.url).task('work', { metadata: { 'tollgate/max_cost': '0.02' } }),
  );
  expect(depth).toBeLessThanOrEqual(9);
  expect(words.at(0)).toBeTypeOf('string');
  expect(words.some((text) => /at most 8 deep/.test(text))).toBe(true);
  expect(spent).toBe(BigInt(depth) * MESSAGE_PRICE);
});
