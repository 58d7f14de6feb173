import { request as requestOf } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { listen } from '../../support/a2a-agent/listening.ts';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startSpine } from '../../support/spine.ts';
import { modernPost, toolToml } from './modern-post.ts';

/** A server that is only at `/mcp/`, as many in Python are: `/mcp` is redirected there. */
async function startMounted(): Promise<string> {
  const fixture = await startMcpFixture({ eras: 'modern' });
  const { hostname, port } = new URL(fixture.url);
  const server = await listen((request, response) => {
    if (request.url !== '/mcp/') return void response.writeHead(307, { location: '/mcp/' }).end();
    const { method, headers } = request;
    const onward = requestOf({ hostname, port, path: '/mcp', method, headers }, (reply) => {
      response.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(response);
    });
    request.pipe(onward);
  });
  onTestFinished(async () => {
    await server.close();
    await fixture.close();
  });
  return `${server.url}/mcp/`;
}

test('a tool at an address with a trailing slash is called there, directly and through a proxy', async () => {
  const url = await startMounted();
  const spine = await startSpine({ toml: toolToml({ name: 'direct/tool', url }) });
  onTestFinished(() => spine.stop());
  const proxy = await dialIn({
    router: spine.origin,
    services: toolToml({ name: 'dialled/tool', url, provider: 'Dialled' }),
  });
  onTestFinished(() => proxy.kill());
  for (const service of ['direct/tool', 'dialled/tool']) {
    const { message } = await modernPost(spine, `/mcp/${service}`, 'tools/list');
    expect(message.result['tools']).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: 'test_simple_text' })]),
    );
    const called = await modernPost(spine, `/mcp/${service}`, 'tools/call', {
      name: 'test_simple_text',
      arguments: {},
    });
    expect(called.message.result['isError']).not.toBe(true);
  }
  expect(await spine.faults()).toEqual([]);
});
