import { expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { callTool, modernPost, toolToml, type PostOptions } from '../calls/modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const TOOLS = ['cheap', 'dear'].map((name) => `{"name":"${name}","inputSchema":{}}`);

const server = ofFile(
  () =>
    startRawMcp(
      ({ params }) =>
        params['requestState'] === undefined
          ? '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"its own"}'
          : '{"content":[],"resultType":"complete"}',
      TOOLS,
    ),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  toml:
    toolToml({ name: 'acme', url: server.url, pricing: 'per_call = 0.001\n[tools.pricing.tools]\ndear = 0.5' }) +
    toolToml({ name: 'gratis', url: server.url, pricing: 'per_call = 0', provider: 'Other' }),
}));

const stateOf = async (service: string, tool: string) =>
  (await callTool(spine, service, tool)).message.result['requestState'];

/** What a call that goes on with a state costs, in micro-USD; and its answer. */
async function goOn(service: string, tool: string, requestState: unknown, options: PostOptions = {}) {
  const total = async () => (await spine.balance()).available;
  // The lock of the round before is given back in the same step.
  await callTool(spine, service, tool, {}, { ...options, params: { requestState, inputResponses: {} } });
  await spine.quiet();
  const before = await total();
  const reply = await callTool(spine, service, tool, {}, { ...options, params: { requestState, inputResponses: {} } });
  await spine.quiet();
  expect(await spine.faults()).toEqual([]);
  return { reply, cost: before - (await total()) };
}

test.each([
  ['cheap', 'dear', 1_000n],
  ['dear', 'cheap', 500_000n],
])(
  'the state of a call of %s is refused for %s, which costs something else, and stays good for its own',
  async (asked, named, cost) => {
    const requestState = await stateOf('acme', asked);
    const seen = server.asked.length;
    const refused = await callTool(spine, 'acme', named, {}, { params: { requestState, inputResponses: {} } });
    expect(refused.message.error?.code).toBe(-32_602);
    expect(server.asked.length).toBe(seen);
    expect((await goOn('acme', asked, requestState)).cost).toBe(cost);
  },
);

test('the service is the one that asked, at its price, wherever the state is sent', async () => {
  expect((await goOn('gratis', 'dear', await stateOf('acme', 'dear'))).cost).toBe(500_000n);
  expect((await goOn('acme', 'dear', await stateOf('gratis', 'dear'))).cost).toBe(0n);
});

test('the state of another account, or of an unrestricted key at a restricted one, is refused', async () => {
  const requestState = await stateOf('acme', 'dear');
  const mallory = await spine.tenant('mallory', '1');
  const limited = await spine.tenant('tester', '0', { allowedServices: ['gratis'] });
  const params = { requestState, inputResponses: {} };
  expect((await callTool(spine, 'acme', 'dear', {}, { key: mallory.key, params })).message.error?.code).toBe(-32_602);
  const ofRestrictedKey = await callTool(spine, 'gratis', 'dear', {}, { key: limited.key, params });
  expect(ofRestrictedKey.message.error?.code).toBe(-32_602);
  expect((await goOn('acme', 'dear', requestState)).cost).toBe(500_000n);
});

test('a call that is wrapped costs what the tool costs', async () => {
  const requestState = await stateOf('acme', 'dear');
  await goOn('acme', 'dear', requestState);
  const before = (await spine.balance()).available;
  const wrapped = { name: 'call_tool', arguments: { name: 'acme__dear' }, requestState, inputResponses: {} };
  expect((await modernPost(spine, '/mcp', 'tools/call', wrapped)).message.result['resultType']).toBe('complete');
  await spine.quiet();
  expect(before - (await spine.balance()).available).toBe(500_000n);
  for (const name of ['call_tool', '__proto__', 'constructor__x', 'acme____proto__', 'acme__toString'])
    expect(
      (await modernPost(spine, '/mcp', 'tools/call', { ...wrapped, arguments: { name } })).message.error?.code,
    ).toBe(-32_602);
  expect(before - (await spine.balance()).available).toBe(500_000n);
  expect(await spine.faults()).toEqual([]);
});

test.each(['__proto__', 'constructor', 'toString'])('a tool named %s has the price of any other', async (name) => {
  expect((await goOn('acme', name, await stateOf('acme', 'cheap'))).cost).toBe(1_000n);
});

test('a client without an envelope goes on as well: the server gets its own state', async () => {
  const requestState = await stateOf('acme', 'cheap');
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'cheap', arguments: {}, requestState } };
  expect(
    await (
      await fetch(`${spine.origin}/mcp/acme`, {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json(),
  ).toMatchObject({ result: { resultType: 'complete' } });
  expect(server.asked.at(-1)!.params['requestState']).toBe('its own');
  await spine.quiet();
  expect(await spine.faults()).toEqual([]);
});

test('whoever listens with an idempotency key that is none is no danger', async () => {
  const seen: unknown[] = [];
  const onRejection = (reason: unknown) => void seen.push(reason);
  process.on('unhandledRejection', onRejection);
  const listen = { notifications: { resourceSubscriptions: ['acme+file:///x'] } };
  const listening = modernPost(spine, '/mcp', 'subscriptions/listen', listen, {
    headers: { 'idempotency-key': 'x'.repeat(300) },
    signal: AbortSignal.timeout(300),
  });
  await expect(listening).rejects.toThrow();
  process.off('unhandledRejection', onRejection);
  expect(seen).toEqual([]);
});
