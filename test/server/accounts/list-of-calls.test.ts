import { expect, test } from 'vitest';
import { draw, type Generation } from '../../../examples/agent-run/receipt-tree.ts';
import { openWorld, type ErrorBody, type World } from './gateway-world.ts';

// `GET /generations`: an account's own calls, the newest first, a page at a time.

interface Page {
  readonly data: readonly Record<string, unknown>[];
  readonly next_cursor: string | null;
}

interface Made {
  readonly service?: string;
  readonly primitive?: string;
  readonly key?: string;
  /** What it is charged; null is a call that goes on. */
  readonly charge?: bigint | null;
  readonly outcome?: string;
}

async function made(
  world: World,
  id: string,
  account: string,
  { service = 'author/model', primitive = 'model', key, charge = 5n, outcome = 'complete' }: Made = {},
) {
  const { ledger, clock, price } = world;
  const detail = JSON.stringify({ primitive, service, key: key ?? null, requestId: `r-${id}`, stream: false });
  await ledger.lock({ id, account, amount: 10n, prices: [price], expiresAt: clock.now + 1_000_000, detail });
  if (charge === null) return;
  const run = JSON.stringify({ service, providerName: 'P', outcome, firstByteMs: 3, durationMs: 9 });
  await ledger.settle({
    id,
    price,
    provider: 'p',
    charge,
    draw: false,
    feeBps: 0,
    usage: '{"prompt":3,"completion":1}',
    detail: run,
  });
}

const list = async (world: World, key: string, query = '') =>
  (await world.call<Page>(key, 'GET', `/api/v1/generations${query}`)).body;
const ids = ({ data }: Page) => data.map(({ id }) => id);

test('the newest first, a page at a time to the end, also where many began in one millisecond', async () => {
  const world = await openWorld();
  const { account, key } = await world.tenant('alice');
  const bob = await world.tenant('bob');
  for (let i = 0; i < 9; i++) {
    if (i % 3 === 0) world.clock.now += 1_000;
    await made(world, `gen-${i}`, account);
    await made(world, `other-${i}`, bob.account);
  }
  const seen: unknown[] = [];
  let page = await list(world, key, '?limit=4');
  for (;;) {
    seen.push(...ids(page));
    if (page.next_cursor === null) break;
    page = await list(world, key, `?limit=4&cursor=${page.next_cursor}`);
  }
  expect(seen).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0].map((i) => `gen-${i}`));
  expect((await list(world, key)).data[0]).toMatchObject({
    state: 'settled',
    outcome: 'complete',
    account,
    primitive: 'model',
    model: 'author/model',
    provider_name: 'P',
    total_cost: 0.000005,
    tokens_prompt: 3,
    tokens_completion: 1,
    latency: 3,
    generation_time: 9,
    created_at: '2026-03-04T05:06:10.089Z',
  });
});

test('by service, primitive, key, time, state and outcome', async () => {
  const world = await openWorld();
  const { account, key, hash } = await world.tenant('alice');
  const start = world.clock.now;
  await made(world, 'old', account);
  world.clock.now = start + 86_400_000;
  await made(world, 'tool', account, { service: 'author/tools', primitive: 'tool' });
  await made(world, 'keyed', account, { key: hash });
  await made(world, 'cut', account, { outcome: 'cut' });
  await made(world, 'held', account, { charge: null });
  await made(world, 'percent', account, { service: '100%_sure' });
  for (const [query, found] of [
    ['service=author/tools', ['tool']],
    ['service=100%25_sure', ['percent']],
    ['service=Author/Tools', []],
    ['service=author/%25', []],
    ['primitive=tool', ['tool']],
    [`key=${hash}`, ['keyed']],
    ['state=held', ['held']],
    ['outcome=cut', ['cut']],
    ['to=2026-03-04', ['old']],
    ['from=2026-03-05&primitive=tool', ['tool']],
    ['from=2026-03-05T05:06:07.090Z', []],
    ['to=2026-03-04T06:06:07.089%2B01:00', ['old']],
    ['to=2026-03-04T06:06:07.088%2B01:00', []],
  ] as const)
    expect([query, ids(await list(world, key, `?${query}`))]).toEqual([query, found]);
  for (const [query, param] of [
    ['cursor=x', 'cursor'],
    ['from=yesterday', 'from'],
    ['from=2026-03-05&to=2026-03-04', 'from'],
    ['foo=bar', 'foo'],
    ['model=author/model', 'model'],
    ['to=2026-02-31T00:00:00', 'to'],
    ['limit=101', 'limit'],
    ['primitive=chat', 'primitive'],
    ['state=open', 'state'],
    ['key=abc', 'key'],
  ] as const)
    expect((await world.call<ErrorBody>(key, 'GET', `/api/v1/generations?${query}`)).body.error).toMatchObject({
      code: 400,
      param,
    });
});

test('a key with limits sees its own calls alone', async () => {
  const world = await openWorld();
  const { account, key } = await world.tenant('alice');
  const { text: limited, record } = (await world.keys.create({
    account,
    label: 'limited',
    kind: 'live',
    limit: 1_000n,
  }))!;
  await made(world, 'others', account);
  await made(world, 'own', account, { key: record.hash });
  expect(ids(await list(world, key))).toEqual(['own', 'others'].toSorted().toReversed());
  expect(ids(await list(world, limited))).toEqual(['own']);
  const { status, body } = await world.call<ErrorBody>(limited, 'GET', `/api/v1/generations?key=${'0'.repeat(64)}`);
  expect([status, body.error.type]).toEqual([403, 'permission_denied']);
});

test('the example of an agent draws a call with what it metered', async () => {
  const world = await openWorld();
  const { account, key } = await world.tenant('alice');
  await made(world, 'gen-1', account);
  const { body } = await world.call<{ readonly data: Generation }>(key, 'GET', '/api/v1/generation?id=gen-1');
  const lines = draw(body.data, (_style, text) => text);
  expect(lines).toEqual([
    expect.stringMatching(/^model author\/model +0\.000005 +3 prompt, 1 completion +✓ signed +gen-1$/),
  ]);
});
