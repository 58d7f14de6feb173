import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { startCluster, type Cluster } from '../../support/cluster.ts';
import { dialIn } from '../../support/dial-in.ts';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { UNHURRIED, type Spine } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';
import { callIn, endSession, listenIn, openSession, send, type OldSession } from './clients.ts';
import { commandTool } from './offered-tools.ts';

// Two gateways of one database: what a client begins at one, it goes on with at the other.

const ASKS =
  '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"round-1"}';
const DONE = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';
const WHO = { who: { action: 'accept', content: { name: 'me' } } };
const PRICE = 1_000n;

let cluster: Cluster<Spine>;
let here: Spine;
let there: Spine;
let key: string;
let legacy: McpFixture;
let modern: RawMcp;
let answerWaiting = () => {};
beforeAll(async () => {
  legacy = await startMcpFixture({ eras: 'legacy' });
  modern = await startRawMcp(
    async ({ params }) => {
      if (params['name'] === 'read') return DONE.replace('done', String(modern.asked.length) + 'x'.repeat(1_500_000));
      if (params['name'] === 'wait') await new Promise<void>((resolve) => (answerWaiting = resolve));
      return params['name'] === 'ask' && params['requestState'] !== 'round-1' ? ASKS : DONE;
    },
    ['ask', 'do', 'wait', 'read'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
  );
  const media = '[media]\nfree_bytes_min = 1\n';
  const toml =
    UNHURRIED + media + toolToml({ name: 'old', url: legacy.url }) + toolToml({ name: 'new', url: modern.url });
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), size: 2, toml });
  [here, there] = cluster.gateways as [Spine, Spine];
  // One key that both know.
  ({ key } = here);
});
afterAll(async () => {
  await cluster.stop();
  await legacy.close();
  await modern.close();
});

const at = ({ origin }: Spine) => ({ origin, key });
const moved = (session: OldSession, to: Spine): OldSession => ({ ...session, door: at(to) });
const LIST = { jsonrpc: '2.0', id: 9, method: 'tools/list' };
/** What the account paid meanwhile, in micro-USD. */
async function paid(run: () => Promise<unknown>): Promise<bigint> {
  const before = (await here.balance()).available;
  await run();
  expect(await here.faults()).toEqual([]);
  return before - (await here.balance()).available;
}

test.each(['old', 'new'])(
  'a session that was opened at one is used at the other, and at both in turn (server: %s)',
  async (service) => {
    const tool = service === 'old' ? 'test_simple_text' : 'do';
    // The gateways list tools in sessions of their own, which end then.
    await until(() => legacy.sessions === 0);
    const charged = await paid(async () => {
      const session = await openSession(at(here), service);
      for (const spine of [there, here, there])
        expect((await callIn(moved(session, spine), tool)).message.result).toMatchObject({
          content: [{ type: 'text' }],
        });
      // One session at its server, however many gateways its client comes by.
      if (service === 'old') await until(() => legacy.sessions === 1);
      await endSession(session);
    });
    expect(charged).toBe(3n * PRICE);
  },
);

test('one that is ended at the other is over at both, and its stream ends with it', async () => {
  const session = await openSession(at(here), 'old');
  const listens = ({ headers }: McpFixture) =>
    headers.filter((one) => one.get('accept') === 'text/event-stream').length;
  const before = listens(legacy);
  // This server sends the head of a stream with its first event.
  const stream = listenIn(session);
  await until(() => listens(legacy) > before);
  expect((await send(moved(session, there), LIST)).status).toBe(200);
  expect(await endSession(moved(session, there))).toBe(204);
  expect((await (await stream).over).how).toBe('whole');
  for (const spine of [there, here]) expect((await send(moved(session, spine), LIST)).status).toBe(404);
  expect(await endSession(session)).toBe(404);
});

test('a large outcome that is kept at one is repeated by the other', async () => {
  const charged = await paid(async () => {
    const ask = (spine: Spine) =>
      callTool(at(spine), 'new', 'read', {}, { headers: { 'idempotency-key': 'large', accept: 'application/json' } });
    const first = await ask(here);
    const again = await ask(there);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(again.text === first.text).toBe(true);
  });
  expect(charged).toBe(PRICE);
});

test('rounds with a modern server are gone on with anywhere, and cost one call', async () => {
  const charged = await paid(async () => {
    const first = await callTool(at(here), 'new', 'ask');
    const { requestState } = first.message.result;
    const last = await callTool(at(there), 'new', 'ask', {}, { params: { requestState, inputResponses: WHO } });
    expect(last.message.result.content).toEqual([{ type: 'text', text: 'done' }]);
  });
  expect(charged).toBe(PRICE);
});

test('rounds with a legacy server are held where they began: elsewhere they are an error that says so, and nothing is charged', async () => {
  const tool = 'test_input_required_result_elicitation';
  const answer = ({ message: { result } }: Awaited<ReturnType<typeof callTool>>) => ({
    requestState: result.requestState,
    inputResponses: { [Object.keys(result.inputRequests!)[0]!]: { action: 'accept', content: { name: 'Ada' } } },
  });
  const charged = await paid(async () => {
    const first = await callTool(at(here), 'old', tool);
    expect((await there.balance()).locked).toBe(PRICE);
    const wrong = await callTool(at(there), 'old', tool, {}, { params: answer(first) });
    expect(wrong.message.error).toMatchObject({
      code: -32_602,
      message: expect.stringContaining('another gateway of this installation'),
    });
    const right = await callTool(at(here), 'old', tool, {}, { params: answer(first) });
    expect(right.message.result.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }]);
  });
  expect(charged).toBe(PRICE);
});

test('an idempotency key is one at both: what ran at one is repeated by the other', async () => {
  const meta = { 'tollgate/idempotency-key': 'shared' };
  const asked = modern.asked.length;
  const charged = await paid(async () => {
    const first = await callTool(at(here), 'new', 'do', {}, { meta, id: 1 });
    const second = await callTool(at(there), 'new', 'do', {}, { meta, id: 2 });
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(second.message).toEqual({ ...first.message, id: 2 });
  });
  expect(charged).toBe(PRICE);
  expect(modern.asked.length).toBe(asked + 1);
});

test('and while it runs at one, the other says that it does', async () => {
  const meta = { 'tollgate/idempotency-key': 'running' };
  const charged = await paid(async () => {
    const asked = modern.asked.length;
    const first = callTool(at(here), 'new', 'wait', {}, { meta });
    await until(() => modern.asked.length > asked);
    const second = await callTool(at(there), 'new', 'wait', {}, { meta });
    expect([second.status, second.message.error?.message]).toEqual([409, expect.stringMatching(/runn|progress/)]);
    answerWaiting();
    expect((await first).message.result.content).toEqual([{ type: 'text', text: 'done' }]);
    expect(modern.asked.length).toBe(asked + 1);
  });
  expect(charged).toBe(PRICE);
});

test('the definition of a tool is pinned once: both show the same hash, version and time', async () => {
  const pins = async (spine: Spine) => {
    const { message } = await modernPost(at(spine), '/mcp/old', 'tools/list');
    return (message.result.tools as unknown as { readonly name: string; readonly _meta: object }[]).map(
      ({ name, _meta }) => [name, _meta],
    );
  };
  await until(
    async () =>
      JSON.stringify(await pins(here)).includes('sha256') && JSON.stringify(await pins(there)).includes('sha256'),
  );
  expect(await pins(here)).toEqual(await pins(there));
});

test('behind a proxy that is connected to the other gateway: calls, questions, streams and the end of a session go all the way', async () => {
  const command = commandTool('tunnel/command');
  const proxy = await dialIn({
    router: there.origin,
    services: command.toml,
    limits: { toolStop: { termMs: 100, killMs: 500 } },
  });
  onTestFinished(() => proxy.kill());
  await until(async () => (await modernPost(at(here), '/mcp/tunnel/command', 'tools/list')).status === 200);
  const charged = await paid(async () => {
    const session = await openSession(at(here), 'tunnel/command');
    expect((await callIn(session, 'count', {}, 1)).message.result).toMatchObject({ content: [{ text: '1' }] });
    expect((await callIn(moved(session, there), 'count', {}, 2)).message.result).toMatchObject({
      content: [{ text: '2' }],
    });
    const stream = await listenIn(session);
    await stream.has(':');
    const first = await callTool(at(here), 'tunnel/command', 'elicit');
    const { requestState, inputRequests } = first.message.result;
    const inputResponses = { [Object.keys(inputRequests!)[0]!]: { action: 'accept', content: { name: 'Ada' } } };
    const last = await callTool(at(here), 'tunnel/command', 'elicit', {}, { params: { requestState, inputResponses } });
    expect(JSON.stringify(last.message.result.content)).toContain('Ada');
    const running = callIn(session, 'never', {}, 3);
    await until(() => command.got('"never"').length === 1);
    expect(
      (await send(session, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } })).status,
    ).toBe(202);
    await running;
    const { length } = command.running();
    expect(await endSession(moved(session, there))).toBe(204);
    expect((await stream.over).how).toBe('whole');
    await until(() => command.running().length < length);
  });
  expect(charged).toBe(3n * PRICE);
});
