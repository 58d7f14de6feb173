import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { reachable, startCluster, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';
import { unlessStalled } from '../support/unless-stalled.ts';

// A provider is connected to the first gateway. A call is the same at each: what the provider is sent, what the
// caller gets, what it costs.

/** So that the provider that stalls costs little time. */
const IDLE_MS = 400;

let cluster: Cluster<Spine>;
let proxy: DialledIn;
beforeAll(async () => {
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    redisUrl: inject('redisUrl'),
    toml: `${UNHURRIED}\n[upstream]\ncooldown_ms = 0\nidle_timeout_ms = ${IDLE_MS}`,
  });
  const [first] = cluster.gateways;
  proxy = await dialIn({ router: first!.origin, services: offeredModel({ url: cluster.provider.url }) });
  await reachable(
    cluster.gateways.map(({ origin }) => origin),
    'tunnel/model',
  );
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
});
afterEach(async () => {
  expect(await cluster.gateways[0]!.faults()).toEqual([]);
});

const BODY = { messages: [{ role: 'user', content: '' }], max_tokens: 4000 };

interface Told {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** With the id of the call and the time taken out. */
  readonly text: string;
  readonly sent: unknown;
  readonly money: unknown;
}

/** One call, and all that can be known of it. */
async function call(gateway: Spine, model: string, content: string, more: object): Promise<Told> {
  const { log } = cluster.provider;
  const seen = log.length;
  const response = await gateway.post(
    '/chat/completions',
    { ...BODY, model, messages: [{ role: 'user', content }], ...more },
    { 'x-request-id': 'same' },
  );
  const text = await response.text();
  const id = response.headers.get('x-generation-id');
  await gateway.quiet();
  const [received] = log.slice(seen);
  expect(log.length).toBe(seen + 1);
  // The provider sees the end of its connection later than the books.
  await received!.ended;
  const names = [...response.headers.keys()].filter((name) => !CHANGING.has(name) && !name.startsWith('x-ratelimit'));
  const record = id === null ? null : await gateway.generation(id);
  return {
    status: response.status,
    headers: Object.fromEntries(names.map((name) => [name, response.headers.get(name)!])),
    text: (id === null ? text : text.replaceAll(id, 'the-id')).replaceAll(/"created":\d+/g, '"created":0'),
    sent: { text: received!.text, headers: { ...received!.headers, host: null }, end: received!.end },
    money: record && {
      state: record.state,
      provider: record.provider,
      cost: record.cost_micro_usdc,
      prompt: record.tokens_prompt,
      completion: record.tokens_completion,
      flags: record.flags,
      entries: record.entries.map(({ type, amount_micro_usdc }) => [type, amount_micro_usdc]),
    },
  };
}
const CHANGING = new Set(['date', 'x-generation-id', 'x-response-time']);

/** Of events alone. */
const OF_STREAMS = ['!tokens:10 !eol:crlf !bom !comments', '!tokens:10 !no-done', '!error-at:3'];
const ENDINGS = [
  '!tokens:20',
  '!tokens:100 !split:7',
  '!tokens:10 !dribble',
  '!tokens:10 !usage:none',
  '!tokens:10 !usage:x1000',
  '!status:503:html !retry-after:7',
  '!status:400',
  '!cut:0',
  '!cut:250',
  '!cut-head:20',
  '!stall:250',
];

describe.each([false, true])('stream: %s', (stream) => {
  it.each(stream ? [...ENDINGS, ...OF_STREAMS] : ENDINGS)('%s', (content) =>
    unlessStalled(IDLE_MS / 4, async () => {
      const [first, ...others] = cluster.gateways;
      const expected = await call(first!, 'tunnel/model', content, { stream });
      for (const [index, model] of ['tunnel/model', `${proxy.id}:tunnel/model`].entries())
        expect(await call(others[index]!, model, content, { stream })).toEqual(expected);
    }),
  );
});

it('a long request and a long answer', () =>
  unlessStalled(IDLE_MS / 4, async () => {
    const [first, ...others] = cluster.gateways;
    const content = `${'Größe 日本 '.repeat(6_000)}!tokens:4000`;
    const expected = await call(first!, 'tunnel/model', content, { stream: true });
    expect(expected.status).toBe(200);
    expect(expected.text.length).toBeGreaterThan(300_000);
    for (const gateway of others)
      expect(await call(gateway, 'tunnel/model', content, { stream: true })).toEqual(expected);
  }));

it('is logged and counted by the gateway that it came to, and paid once', async () => {
  for (const gateway of cluster.gateways) {
    const before = await gateway.balance();
    const marks = cluster.gateways.map(({ logs }) => logs.length);
    const response = await gateway.post('/chat/completions', {
      ...BODY,
      model: 'tunnel/model',
      messages: [{ role: 'user', content: '!tokens:5' }],
    });
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
    const id = response.headers.get('x-generation-id')!;
    await gateway.quiet();
    const cost = usage.prompt_tokens + 2 * usage.completion_tokens;
    expect(before.available - (await gateway.balance()).available).toBe(BigInt(cost));
    // The same record everywhere.
    for (const other of cluster.gateways)
      expect(await other.generation(id)).toMatchObject({ cost_micro_usdc: cost, provider: proxy.id });
    const told = cluster.gateways.map(({ logs }, index) => logs.slice(marks[index]).some((line) => line.includes(id)));
    expect(told).toEqual(cluster.gateways.map((each) => each === gateway));
  }
});
