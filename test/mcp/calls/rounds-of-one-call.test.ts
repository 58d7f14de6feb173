import { afterAll, beforeAll, expect, test } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"round-1"}';
const DONE = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';

/** A server that asks twice, and knows its own states only. */
const asking = (own: string) =>
  startRawMcp(({ params }) => {
    if (params['name'] === 'stateless')
      return params['inputResponses'] ? DONE : ASKS.replace(',"requestState":"round-1"', '');
    const state = params['requestState'];
    if (state === undefined) return ASKS.replace('round', own);
    if (state === `${own}-1`) return ASKS.replace('round-1', `${own}-2`);
    return state === `${own}-2`
      ? DONE
      : '{"resultType":"complete","isError":true,"content":[{"type":"text","text":"whose state is this?"}]}';
  });

let server: RawMcp;
let twin: RawMcp;
let spine: Spine;
beforeAll(async () => {
  server = await asking('round');
  twin = await asking('twin');
  spine = await startSpine({
    toml:
      toolToml({ name: 'asks', url: server.url }) +
      toolToml({ name: 'two', url: server.url, provider: 'One' }) +
      toolToml({ name: 'two', url: twin.url, provider: 'Other' }),
  });
});
afterAll(async () => {
  await spine.stop();
  await server.close();
  await twin.close();
});

const ANSWERS = { inputResponses: { who: { action: 'accept', content: { name: 'me' } } } };
const round = (state: unknown, tool = 'ask') =>
  callTool(spine, 'asks', tool, {}, { params: { ...ANSWERS, requestState: state } });

test('a call of three rounds holds one lock at a time and is charged once, at its end', async () => {
  const before = await spine.balance();
  const first = await callTool(spine, 'asks', 'ask');
  expect(first.message.result).toMatchObject({
    resultType: 'input_required',
    inputRequests: { who: { method: 'elicitation/create' } },
  });
  expect(first.message.result.requestState).not.toBe('round-1');
  // What it will cost is not said before it is charged.
  const generation = first.message.result['_meta']!['tollgate/generation'] as unknown as { readonly id: string };
  expect(generation).toEqual({ id: generation.id });
  expect(first.headers.get('x-cost-usd')).toBeNull();
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: before.locked + 1_000n });
  const second = await round(first.message.result.requestState);
  expect(second.message.result.resultType).toBe('input_required');
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: before.locked + 1_000n });
  const third = await round(second.message.result.requestState);
  expect(third.message.result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: before.locked });
  // The server sees its own state, not what the client carried.
  expect(server.asked.slice(-2).map(({ params }) => params['requestState'])).toEqual(['round-1', 'round-2']);
  expect(await spine.faults()).toEqual([]);
});

test('a server without a state of its own gets none, and its rounds are one call all the same', async () => {
  const before = await spine.balance();
  const first = await callTool(spine, 'asks', 'stateless');
  const { requestState } = first.message.result;
  expect(typeof requestState).toBe('string');
  const last = await round(requestState, 'stateless');
  expect(last.message.result.content).toEqual([{ type: 'text', text: 'done' }]);
  expect(server.asked.at(-1)!.params).not.toHaveProperty('requestState');
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: before.locked });
  expect(await spine.faults()).toEqual([]);
});

test('a state that is used twice is paid for twice', async () => {
  const first = await callTool(spine, 'asks', 'stateless');
  const before = await spine.balance();
  await round(first.message.result.requestState, 'stateless');
  await round(first.message.result.requestState, 'stateless');
  const after = await spine.balance();
  expect(after.locked).toBe(before.locked - 1_000n);
  // One of the two took the lock that was held.
  expect(after.available).toBe(before.available - 1_000n);
  expect(await spine.faults()).toEqual([]);
});

test('a state that was changed, or is of another account or restricted key, is refused and costs nothing', async () => {
  const first = await callTool(spine, 'asks', 'ask');
  const state = String(first.message.result.requestState);
  const other = await spine.tenant('other', '1');
  const limited = await spine.tenant('tester', '0', { limit: 1_000_000n });
  const seen = server.asked.length;
  for (const [text, key] of [
    [`${state}x`, spine.key],
    [state.replace(/^./, (c) => (c === 'A' ? 'B' : 'A')), spine.key],
    [state, other.key],
    [state, limited.key],
    ['round-1', spine.key],
    [7, spine.key],
  ] as const) {
    const reply = await callTool(spine, 'asks', 'ask', {}, { key, params: { ...ANSWERS, requestState: text } });
    expect(reply.message.error, String(text)).toMatchObject({ code: -32602 });
  }
  expect(server.asked.length).toBe(seen);
  const { message } = await callTool(spine, 'asks', 'ask', {}, { key: limited.key });
  const own = { key: limited.key, params: { ...ANSWERS, requestState: message.result.requestState } };
  expect((await callTool(spine, 'asks', 'ask', {}, own)).message.result.resultType).toBe('input_required');
});

test('every round goes to the provider of the first', async () => {
  const seen = new Set<unknown>();
  for (let i = 0; i < 12; i++) {
    // Without the preference for whoever served last, each account begins where the draw falls.
    const { key } = await spine.tenant(`rounds-${i}`, '1');
    const at = (state?: unknown) =>
      callTool(
        spine,
        'two',
        'ask',
        {},
        { key, params: state === undefined ? {} : { ...ANSWERS, requestState: state } },
      );
    const first = await at();
    const second = await at(first.message.result['requestState']);
    const third = await at(second.message.result['requestState']);
    expect(third.message.result['content']).toEqual([{ type: 'text', text: 'done' }]);
    seen.add(server.asked.length > 0 && twin.asked.length > 0);
  }
  expect(seen).toContain(true);
});
