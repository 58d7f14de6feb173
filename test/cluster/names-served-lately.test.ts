import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, type DialledIn } from '../support/dial-in.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';
import { solanaWallet } from '../support/wallets.ts';

// A name that was served a moment ago is never "not found": at no route, at no gateway of the database, and not at
// one that starts only now.

const WALLET = solanaWallet();
let cluster: Cluster<Spine>;
let upstream: PeerProvider;
let proxy: DialledIn;
beforeAll(async () => {
  [cluster, upstream] = await Promise.all([
    startCluster({
      postgresUrl: inject('postgresUrl'),
      size: 2,
      toml: `${UNHURRIED}[tunnel]\ngrace_ms = 0\nwait_ms = 0\n`,
    }),
    startPeerProvider(),
  ]);
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
  await upstream?.close();
});

const services = (name: string) => {
  const named = `name = "${name}"\ndisplay_name = "Peer: All"\nprovider_name = "Peer"\n`;
  return `
[[models]]
${named}context_length = 100000
max_output_tokens = 5000
pricing = { prompt = 1, completion = 1 }
params = { model = "peer", api_base = "${upstream.modelUrl}" }
[[tools]]
${named}endpoint = "${upstream.toolUrl}"
pricing = { per_call = 0.001 }
[[agents]]
${named}endpoint = "${upstream.agentUrl}"
pricing = { per_call = 0.001 }
`;
};

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const said = () => ({
  message: {
    kind: 'message',
    messageId: crypto.randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text: 'complete' }],
  },
});
const tool = { name: 'do', arguments: { text: 'complete' } };
const ENDPOINTS: Record<string, (name: string) => readonly [path: string, body: object]> = {
  chat: (model) => [
    '/api/v1/chat/completions',
    { model, messages: [{ role: 'user', content: 'complete' }], max_tokens: 9 },
  ],
  MCP: (name) => [`/mcp/${name}`, rpc('tools/call', tool)],
  'a model by MCP': (name) => [
    `/mcp/model/${name}`,
    rpc('tools/call', { name: 'chat', arguments: { prompt: 'complete', max_tokens: 9 } }),
  ],
  A2A: (name) => [`/a2a/${name}`, rpc('message/send', said())],
  'a model by A2A': (name) => [`/a2a/model/${name}`, rpc('message/send', said())],
  'an agent by chat': (name) => [
    '/api/v1/chat/completions',
    { model: `a2a/${name}`, messages: [{ role: 'user', content: 'complete' }], max_tokens: 9 },
  ],
  'chat by RPC': (model) => [
    '/api/v1/rpc',
    rpc('chat/completions', { model, messages: [{ role: 'user', content: 'complete' }], max_tokens: 9 }),
  ],
  'MCP by RPC': (service) => ['/api/v1/rpc', rpc('tools/call', { service, ...tool })],
  'A2A by RPC': (agent) => ['/api/v1/rpc', rpc('message/send', { agent, ...said() })],
};

async function ask(gateway: Spine, [path, body]: readonly [string, object]) {
  const response = await fetch(gateway.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() };
}

test('what was registered at one gateway just now is known at the other', async () => {
  const [here, there] = cluster.gateways as [Spine, Spine];
  for (const door of ['chat', 'MCP', 'A2A', 'chat by RPC', 'A2A by RPC']) {
    await proxy?.close();
    const name = `fresh/${door.toLowerCase().replaceAll(' ', '-')}`;
    proxy = await dialIn({ wallet: WALLET, router: here.origin, services: services(name) });
    const { status, text } = await ask(there, ENDPOINTS[door]!(name));
    expect(status, `${door}: ${text}`).toBe(200);
    expect(text, door).toContain('did complete');
  }
});

const expectAway = async (gateway: Spine, name: string) => {
  for (const [door, request] of Object.entries(ENDPOINTS)) {
    const { status, retryAfter, text } = await ask(gateway, request(name));
    expect(text, `${door} ${status}`).toMatch(/has disconnected/);
    if (status !== 200) expect([status, Number(retryAfter) > 0], `${door}: ${text}`).toEqual([503, true]);
    if (door === 'chat') expect(status).toBe(503);
  }
  const { status } = await ask(gateway, ENDPOINTS['chat']!(`${name}-mistyped`));
  expect(status).toBe(404);
};

test('what was served a moment ago is 503 with Retry-After, at every gateway', async () => {
  const [here, there] = cluster.gateways as [Spine, Spine];
  await proxy.close();
  proxy = await dialIn({ wallet: WALLET, router: here.origin, services: services('lately/served') });
  const question = ENDPOINTS['chat']!('lately/served');
  for (const gateway of [here, there]) expect((await ask(gateway, question)).status).toBe(200);
  await proxy.close();
  for (const gateway of [here, there]) {
    await until(async () => (await ask(gateway, question)).text.includes('has disconnected'), 'it is listed no longer');
    await expectAway(gateway, 'lately/served');
  }
});

test('at a gateway that starts after it went away too', async () => {
  await expectAway(await cluster.add(), 'lately/served');
});
