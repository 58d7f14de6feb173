import { expect, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startRawServer } from '../legacy-to-modern/raw-server.ts';
import { call, messagesOf, startAggregateSpine, streamOf } from './aggregate-spine.ts';

const LISTEN = {
  jsonrpc: '2.0',
  id: 'mine',
  method: 'subscriptions/listen',
  params: {
    notifications: {
      toolsListChanged: true,
      resourceSubscriptions: [
        'acme--old+test://watched-resource',
        'acme--new+test://watched-resource',
        'nowhere+test://x',
      ],
    },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};
const HEADERS = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };

test('a modern client hears of resources of several services under its own subscription, and its stream ends with the gateway', async () => {
  const [legacy, modern] = [await startMcpFixture({ eras: 'legacy' }), await startMcpFixture({ eras: 'modern' })];
  const spine = await startAggregateSpine({ 'acme/old': legacy.url, 'acme/new': modern.url });
  const reply = await spine.send(LISTEN, null, { headers: HEADERS });
  const stream = streamOf(reply);
  const _meta = { 'io.modelcontextprotocol/subscriptionId': 'mine' };
  const acknowledged = (await stream.next()) as {
    method: string;
    params: { notifications: { resourceSubscriptions: string[] } };
  };
  expect(acknowledged).toMatchObject({
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta, notifications: { toolsListChanged: true } },
  });
  expect(acknowledged.params.notifications.resourceSubscriptions.toSorted()).toEqual([
    'acme--new+test://watched-resource',
    'acme--old+test://watched-resource',
  ]);
  for (const slug of ['acme--old', 'acme--new']) {
    await messagesOf(await spine.send(call(1, `${slug}__test_trigger_resource_update`)));
    expect(await stream.next()).toMatchObject({
      method: 'notifications/resources/updated',
      params: { uri: `${slug}+test://watched-resource`, _meta },
    });
  }
  await spine.stop();
  expect(await stream.rest()).toMatchObject([{ id: 'mine', result: { resultType: 'complete', _meta } }]);
  await legacy.close();
  await modern.close();
});

test('a client that takes no events is told so, and one with a wrong header does no harm', async () => {
  const modern = await startMcpFixture({ eras: 'modern' });
  const spine = await startAggregateSpine({ 'acme/new': modern.url });
  const refused = await spine.send(LISTEN, null, { headers: HEADERS, accept: 'application/json' });
  expect([refused.status, await refused.json()]).toMatchObject([400, { id: 'mine', error: { code: -32600 } }]);
  const stream = streamOf(await spine.send(LISTEN, null, { headers: { ...HEADERS, 'idempotency-key': '' } }));
  expect(await stream.next()).toMatchObject({ params: { notifications: { toolsListChanged: true } } });
  await stream.cancel();
  expect((await spine.send({ jsonrpc: '2.0', id: 1, method: 'ping' })).status).toBe(200);
  await spine.stop();
  await modern.close();
});

test('a service that ends its stream is asked again, and one that refuses is not', async () => {
  const asked: string[] = [];
  const start = (refuses: boolean) =>
    startRawServer(({ id, method, params }, reply) => {
      if (method === 'tools/list')
        return reply.result(
          '{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{"type":"object"}}]}',
        );
      if (method !== 'subscriptions/listen')
        return reply.json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`, 404);
      asked.push(refuses ? 'refused' : 'taken');
      if (refuses)
        return reply.json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`, 404);
      reply.event(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/subscriptions/acknowledged',
          params: { notifications: params['notifications'] },
        }),
      );
      reply.event(
        `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://watched-resource"}}`,
      );
      reply.event(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete"}}`);
      return reply.end();
    });
  const spine = await startAggregateSpine({
    'acme/old': (await start(true)).url,
    'acme/new': (await start(false)).url,
  });
  const stream = streamOf(await spine.send(LISTEN, null, { headers: HEADERS }));
  const updated = { method: 'notifications/resources/updated', params: { uri: 'acme--new+test://watched-resource' } };
  const messages = [await stream.next(), await stream.next(), await stream.next()];
  expect(messages.filter(({ method }) => method === updated.method)).toMatchObject([updated, updated]);
  expect(messages.find(({ method }) => method !== updated.method)).toMatchObject({
    params: { notifications: { resourceSubscriptions: ['acme--new+test://watched-resource'] } },
  });
  expect(asked.filter((one) => one === 'refused')).toHaveLength(1);
  await stream.cancel();
});
