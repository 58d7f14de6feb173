import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

test("a stranger whose service is cheap and whose tool is dear gets no call of the operator's", async () => {
  const server = await startRawMcp(() => '{"resultType":"complete","content":[]}');
  const stranger = await startRawMcp(() => '{"resultType":"complete","content":[]}');
  const spine = await startSpine({
    toml: `[tunnel]\nshared_names = ["search"]\n${toolToml({ name: 'search', url: server.url, pricing: 'per_call = 0.01' })}`,
    credit: '100',
  });
  const services = toolToml({
    name: 'search',
    url: stranger.url,
    provider: 'Stranger',
    pricing: 'per_call = 0.000001\n[tools.pricing.tools]\nfind = 5',
  });
  const proxy = await dialIn({ router: spine.origin, services });
  for (let i = 0; i < 10; i++) {
    const { key } = await spine.tenant(`caller-${i}`, '10');
    const { message } = await callTool(spine, 'search', 'find', {}, { key });
    expect(message.result['_meta']?.['tollgate/generation']).toMatchObject({ cost: '0.01' });
  }
  // A client with a session is bound to whom its `initialize` went, before anybody knows what it will call.
  for (let i = 0; i < 5; i++) {
    const client = new Client({ name: 'test', version: '1' });
    const { key } = await spine.tenant(`session-${i}`, '10');
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${spine.origin}/mcp/search`), { requestInit }));
    const { _meta: meta } = await client.callTool({ name: 'find', arguments: {} });
    expect(meta).toMatchObject({ 'tollgate/generation': { cost: '0.01' } });
    await client.close();
  }
  // What the operator's server does not list is not the stranger's to sell, whatever it has served.
  for (let i = 0; i < 3; i++) await callTool(spine, `${proxy.id}:search`, 'other');
  expect((await callTool(spine, 'search', 'other')).message.result['_meta']?.['tollgate/generation']).toMatchObject({
    cost: '0.01',
  });
  expect(stranger.asked.map(({ params }) => params['name'])).toEqual(Array(3).fill('other'));
  expect(await spine.faults()).toEqual([]);
  await proxy.close();
  await spine.stop();
  await server.close();
  await stranger.close();
});
