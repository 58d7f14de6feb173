import { setTimeout as pause } from 'node:timers/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import type { Offer } from '#catalog';
import type { Send } from '#call';
import { createHeldCalls, createQuestions } from '../../../src/mcp/servers/held-calls.ts';
import { parseMessage, type RequestMessage } from '../../../src/gateway/json-rpc/message.ts';
import { createServers } from '../../../src/mcp/servers/servers.ts';
import { startSpine } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';

test('a call does not wait longer than it may for what another asks of its server', async () => {
  const servers = createServers({ version: '1', replyBytesMax: 1_000, now: Date.now });
  const offer = { id: 'tool/p:s', provider: { id: 'p' } } as Offer;
  const first = Promise.withResolvers<never>();
  const send = (() => ({ head: first.promise, abort() {}, over() {} })) as unknown as Send;
  const asking = servers.facts(offer, send);
  const over = new AbortController();
  const waiting = servers.facts(offer, send, over.signal);
  over.abort(new Error('the call is over'));
  await expect(waiting).rejects.toThrow('the call is over');
  first.reject(new UpstreamFailure('gone', { retryable: true, attributedTo: 'provider' }));
  await expect(asking).rejects.toThrow('gone');
});

test('a server whose stream ends at once again and again is asked again slowly', async () => {
  let streams = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { id, method } = (request.method === 'POST' ? JSON.parse(Buffer.concat(chunks).toString()) : {}) as {
        id?: unknown;
        method?: string;
      };
      const json = (body: object, status = 200) =>
        response
          .writeHead(status, { 'content-type': 'application/json', 'mcp-session-id': 's' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
      if (request.method === 'GET' || method === 'tools/call') {
        streams++;
        return response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nretry: 0\ndata:\n\n');
      }
      if (method === 'server/discover') return json({ error: { code: -32_601, message: 'no' } }, 400);
      const capabilities = { tools: { listChanged: true } };
      if (method === 'initialize')
        return json({
          result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'busy', version: '1' } },
        });
      if (id === undefined) return response.writeHead(202).end();
      return json({ result: { tools: [] } });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const spine = await startSpine({ toml: `${toolToml({ name: 'busy', url })}\n[billing]\ndrain_ms = 50\n` });
  const listen = { notifications: { toolsListChanged: true } };
  for (const ask of [
    (signal: AbortSignal) => callTool(spine, 'busy', 't', {}, { signal }),
    (signal: AbortSignal) => modernPost(spine, '/mcp/busy', 'subscriptions/listen', listen, { signal }),
  ]) {
    streams = 0;
    const leaving = new AbortController();
    const begun = performance.now();
    const asking = ask(leaving.signal).catch(() => null);
    await expect.poll(() => streams).toBeGreaterThan(1);
    await pause(Math.max(0, 1_000 - (performance.now() - begun)));
    leaving.abort();
    await asking;
    expect(streams).toBeLessThan((25 * (performance.now() - begun)) / 1_000);
  }
  await spine.stop();
});

test('calls that wait for input hold so much of what is asked and no more', () => {
  const ask = (chars: number) => {
    const questions = createQuestions();
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'elicitation/create',
      params: { message: 'a'.repeat(chars) },
    });
    questions.add(parseMessage(text) as RequestMessage);
    return {
      account: 'alice',
      offerId: 'o',
      method: 'tools/call',
      name: 't',
      call: { cancel() {} } as never,
      questions,
    };
  };
  const held = createHeldCalls({ nodeId: 'node', charsMax: 10_000 });
  const id = held.hold(ask(6_000));
  expect(() => held.hold(ask(6_000))).toThrow('calls that wait for input, which is its share');
  held.take(id, { account: 'alice', offerId: 'o', method: 'tools/call', name: 't' });
  held.hold(ask(6_000));
  held.close();
});
