import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { toolToml } from '../mcp/calls/modern-post.ts';
import { callMessage, openSession, post, send } from '../mcp/faults/clients.ts';
import { startCluster, until, type Cluster } from '../support/cluster.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { MODEL, UNHURRIED, type Spine } from '../support/spine.ts';

// A client calls in a session at one gateway. Its cancellation comes to another one, as behind a load balancer.

let cluster: Cluster<Spine>;
let here: Spine;
let there: Spine;
let modern: RawMcp;
let legacy: ReturnType<typeof startDeaf>;
beforeAll(async () => {
  const tools = ['{"name":"wait","inputSchema":{"type":"object"}}'];
  modern = await startRawMcp(async ({ method, left }) => {
    if (method === 'tools/list') return `{"resultType":"complete","tools":[${tools.join(',')}]}`;
    await new Promise<void>((resolve) => left.addEventListener('abort', () => resolve()));
    return '{"resultType":"complete","content":[]}';
  }, tools);
  legacy = startDeaf();
  const services = toolToml({ name: 'new', url: modern.url }) + toolToml({ name: 'old', url: await legacy.url });
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `${UNHURRIED}[billing]\ndrain_ms = 100\n${services}`,
  });
  [here, there] = cluster.gateways as [Spine, Spine];
});
afterAll(async () => {
  await cluster?.stop();
  await modern?.close();
  legacy?.close();
});
beforeEach(() => {
  modern.asked.length = 0;
  cluster.provider.log.length = 0;
});

/** A server with sessions that answers no call, and does not listen to cancellations. */
function startDeaf() {
  let calls = 0;
  let left = 0;
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const { id, method } = JSON.parse(text || '{}') as { id?: unknown; method?: string };
      const result = (value: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'deaf' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
      const serverInfo = { name: 'deaf', version: '1' };
      if (method === 'initialize')
        return result({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
      if (method === 'tools/list') return result({ tools: [{ name: 'wait', inputSchema: { type: 'object' } }] });
      if (method !== 'tools/call') return response.writeHead(method === 'server/discover' ? 400 : 202).end();
      calls++;
      response.on('close', () => left++);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n');
    });
  });
  const url = new Promise<string>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)),
  );
  return {
    url,
    runs: () => calls > left,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const WAITING = '!head-delay:forever';
const ofModel = {
  begun: () => cluster.provider.log.length === 1,
  over: () => cluster.provider.log[0]!.end === 'client_closed',
};
const waits = () => modern.asked.filter(({ method }) => method === 'tools/call');
const ofModern = { begun: () => waits().length === 1, over: () => waits()[0]!.left.aborted };
const ofLegacy = { begun: () => legacy.runs(), over: () => !legacy.runs() };

/** A model of the operator's own has taken the input, so whoever cancels pays it, and gets a result that says so. */
const PAID_INPUT = { status: 200, text: 'The input that its provider took is charged' };
const FREE = { status: 202, text: '' };

test.each([
  ['a server without sessions', '/new', 'wait', {}, ofModern, FREE],
  ['the same, called at /mcp', '', 'new__wait', {}, ofModern, FREE],
  ['a server that does not listen to it', '/old', 'wait', {}, ofLegacy, FREE],
  ['the same, called at /mcp', '', 'old__wait', {}, ofLegacy, FREE],
  ['a model', `/model/${MODEL}`, 'chat', { prompt: WAITING }, ofModel, PAID_INPUT],
  ['a model, asked at /mcp', '', 'ask_model', { model: MODEL, prompt: WAITING }, ofModel, PAID_INPUT],
])(
  'a call of %s ends, is paid as it should be, and its provider has not failed: %s %s',
  async (_what, path, tool, args, { begun, over }, { status, text }) => {
    const door = { origin: here.origin, key: here.key };
    const service = path.slice(1);
    await until(async () => {
      const listed = await post(door, service, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      return (await listed.text()).includes(`"${tool}"`);
    }, `${tool} is listed`);
    const before = await here.balance();
    const session = await openSession(door, service);
    const answer = send(session, callMessage(tool, args, 7));
    await until(begun, 'the call runs');
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
    const elsewhere = { ...session, door: { origin: there.origin, key: here.key } };
    expect((await send(elsewhere, cancel)).status).toBe(202);
    const reply = await answer;
    expect(reply.status).toBe(status);
    expect(await reply.text()).toContain(text);
    await until(over, 'its provider is left');
    expect(await here.faults()).toEqual([]);
    // The prompt is of 23 bytes, and its role of four.
    expect(before.available - (await here.balance()).available).toBe(text === '' ? 0n : 6n);
    const { data } = (await (await here.get('/providers')).json()) as { data: { uptime: number | null }[] };
    expect(data.map(({ uptime }) => uptime).filter((one) => one !== null && one < 1)).toEqual([]);
  },
);

test('a note of a cancelled request does not end a later one with the same id', async () => {
  const session = await openSession({ origin: here.origin, key: here.key }, 'new');
  const elsewhere = { ...session, door: { origin: there.origin, key: here.key } };
  const call = () => send(session, callMessage('wait', {}, 9));
  const cancel = () => send(elsewhere, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } });
  const first = call();
  await until(() => waits().length === 1, 'the first runs');
  await cancel();
  await (await first).text();
  const left = new AbortController();
  const second = send(session, callMessage('wait', {}, 9), left.signal);
  await until(() => waits().length === 2, 'the second runs');
  // Longer than the gateway takes to look for cancellations.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(waits()[1]!.left.aborted).toBe(false);
  left.abort();
  await expect(second).rejects.toThrow();
  expect(await here.faults()).toEqual([]);
});
