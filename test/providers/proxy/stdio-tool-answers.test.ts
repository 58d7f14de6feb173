import { describe, expect, it } from 'vitest';
import { BOTH, callOf, INITIALIZE, jsonOf, stdioTool, textOf } from './stdio-tool.ts';

const tool = stdioTool({ shared: true });

describe('a command that all clients share', () => {
  it('answers each request under its own id, though clients choose the same', async () => {
    await tool.start();
    const ids = [0, 1, 1, 'one', '1', 1, Number.MAX_SAFE_INTEGER, 'x'.repeat(500)];
    const replies = await Promise.all(ids.map((id, index) => tool.post(callOf('echo', { index }, id))));
    for (const [index, reply] of replies.entries()) {
      expect(reply.status).toBe(200);
      expect(reply.headers['content-type']).toBe('application/json');
      expect(jsonOf(reply).id).toBe(ids[index]);
      expect(textOf(reply)).toEqual({ index });
    }
    const sent = tool.got('tools/call').map(({ id }) => id);
    expect(new Set(sent).size).toBe(ids.length);
  });

  it('is initialised once, by the proxy, and clients get the stored answer', async () => {
    await tool.start();
    for (const id of [1, 'b']) {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
      const reply = await tool.post({ jsonrpc: '2.0', id, method: 'initialize', params });
      expect(jsonOf(reply)).toEqual({
        jsonrpc: '2.0',
        id,
        result: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'stand-in', version: '1' },
        },
      });
      expect((await tool.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202);
    }
    await tool.post(callOf('echo'));
    expect(tool.got('"initialize"')).toHaveLength(1);
    expect(tool.got('notifications/initialized')).toHaveLength(1);
    expect(await tool.running.logged('tool is running')).toMatchObject({
      service: 't',
      server: 'stand-in',
      protocol: '2025-06-18',
    });
  });

  it('keeps numbers as they were written', async () => {
    await tool.start();
    const args = '{"big":12345678901234567890,"small":1.0,"exp":1e400}';
    const reply = await tool.post(
      `{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"raw","arguments":${args}}}`,
    );
    expect(reply.body.toString()).toBe(`{"jsonrpc":"2.0","id":12345678901234567890,"result":{"raw":${args}}}`);
  });

  it('does not let a client change for all what is about one', async () => {
    await tool.start();
    for (const method of ['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
      const reply = await tool.post({ jsonrpc: '2.0', id: 'x', method, params: {} });
      expect(reply.status).toBe(200);
      expect(jsonOf(reply)).toMatchObject({
        id: 'x',
        error: { code: -32601, message: expect.stringContaining('all clients share this server') },
      });
      expect(tool.got(method)).toEqual([]);
    }
  });

  it('has no sessions: it gives no id, and takes no notice of one', async () => {
    await tool.start();
    expect((await tool.post(INITIALIZE)).headers).not.toHaveProperty('mcp-session-id');
    expect(textOf(await tool.post(callOf('echo', { a: 1 }), { 'mcp-session-id': 'made-up' }))).toEqual({ a: 1 });
    for (const method of ['GET', 'DELETE'])
      expect((await tool.end.call({ ':path': '/tool/t', ':method': method, 'mcp-session-id': 'made-up' })).status).toBe(
        405,
      );
  });

  it('streams progress to the one who asked, under his token, before the response', async () => {
    await tool.start();
    const [first, second, plain] = await Promise.all([
      tool.post(callOf('slow', { n: 1 }, 1, { progressToken: 'mine' }), { accept: BOTH }),
      tool.post(callOf('slow', { n: 2 }, 1, { progressToken: 'mine' }), { accept: BOTH }),
      tool.post(callOf('slow', { n: 3 }, 1, { progressToken: 7 }), { accept: 'application/json' }),
    ]);
    for (const [reply, n] of [
      [first, 1],
      [second, 2],
    ] as const) {
      expect(reply.headers['content-type']).toBe('text/event-stream');
      const events = reply.body
        .toString()
        .trim()
        .split('\n\n')
        .map(
          (event) =>
            JSON.parse(/^event: message\ndata: (.+)$/.exec(event)![1]!) as { params?: object; result?: object },
        );
      expect(events.map(({ params }) => params)).toEqual(
        [1, 2].map((progress) => ({ progressToken: 'mine', progress, total: 2 })).concat([undefined as never]),
      );
      expect(JSON.stringify(events[2])).toContain(`{\\"n\\":${n}}`);
    }
    expect(textOf(plain)).toEqual({ n: 3 });
  });

  it('is told when a client leaves', async () => {
    await tool.start();
    const stream = tool.end.open(
      { ':path': '/tool/t', accept: BOTH },
      JSON.stringify(callOf('slow', { hold: true }, 'c', { progressToken: 1 })),
    );
    await new Promise((resolve) => stream.once('data', resolve));
    stream.close(8);
    for (;;) {
      await tool.post(callOf('echo'));
      const [cancelled] = tool.got('notifications/cancelled');
      if (!cancelled) continue;
      expect(cancelled).toMatchObject({ params: { requestId: tool.got('"slow"')[0]!['id'] } });
      break;
    }
  });

  it('gets no notification of one client about himself, and those of other kinds', async () => {
    await tool.start();
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    for (const message of [
      cancelled,
      { jsonrpc: '2.0', method: 'notifications/own/kind' },
      { jsonrpc: '2.0', id: 5, result: {} },
    ])
      expect((await tool.post(message)).status).toBe(202);
    await tool.post(callOf('echo'));
    expect(tool.got('cancelled')).toEqual([]);
    expect(tool.got('notifications/own/kind')).toHaveLength(1);
  });

  it('may not ask its clients', async () => {
    await tool.start();
    await tool.post(callOf('ask'));
    await tool.post(callOf('echo'));
    const answers = tool.got('server-');
    expect(answers).toMatchObject([
      { id: 'server-1', error: { code: -32601 } },
      { id: 'server-2', result: {} },
    ]);
  });

  it.each([
    ['{"jsonrpc":', 400, -32700],
    ['[]', 400, -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600],
    ['{"id":null,"method":"ping"}', 400, -32600],
    ['{"id":{},"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","\\u006dethod":"tools/call"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"crash"}}', 400, -32600],
    [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":1,"progressToken":2}}}',
      400,
      -32600,
    ],
    ['['.repeat(200_000), 400, -32700],
    [`{"jsonrpc":"2.0","id":1,"method":"${'m'.repeat(4_300_000)}"}`, 413, -32600],
  ])('is not sent what is no message (%#)', async (body, status, code) => {
    await tool.start();
    const reply = await tool.post(body);
    expect([reply.status, jsonOf(reply).error.code]).toEqual([status, code]);
    await tool.post(callOf('echo'));
    expect(tool.got('').map(({ method }) => method)).toEqual([
      'server/discover',
      'initialize',
      'notifications/initialized',
      'tools/call',
    ]);
  });

  it('is reached by POST at its own path only', async () => {
    await tool.start();
    for (const method of ['GET', 'DELETE'])
      expect((await tool.end.call({ ':path': '/tool/t', ':method': method })).status).toBe(405);
    expect((await tool.end.call({ ':path': '/tool/t/elsewhere' }, '{}')).headers['x-tollgate-failure']).toBe(
      'unknown_service',
    );
  });

  it('gets its own environment and nothing of the proxy that could be a secret', async () => {
    await tool.start([], { API_TOKEN: 'for-the-tool' });
    const env = textOf(await tool.post(callOf('env'))) as Record<string, string>;
    expect(env).toMatchObject({ API_TOKEN: 'for-the-tool', HOME: tool.dir });
    expect(JSON.stringify(env)).not.toContain('env-canary');
  });

  it('that knows no initialize is of the revisions without sessions: everything is passed on', async () => {
    await tool.start(['start=modern']);
    expect(textOf(await tool.post(callOf('echo', { a: 1 })))).toEqual({ a: 1 });
    expect(jsonOf(await tool.post({ jsonrpc: '2.0', id: 1, method: 'initialize' })).error.code).toBe(-32601);
  });

  it('that ends when it is asked for its era is started again and begun with initialize', async () => {
    await tool.start(['start=strict']);
    expect(textOf(await tool.post(callOf('echo', { a: 1 })))).toEqual({ a: 1 });
    expect(tool.journalled().filter((line) => line.startsWith('pid '))).toHaveLength(2);
    expect(tool.running.lines.map(({ msg }) => msg)).not.toContain('the tool ended');
  });
});
