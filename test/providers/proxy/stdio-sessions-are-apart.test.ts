import { describe, expect, it } from 'vitest';
import { callOf, INITIALIZE, jsonOf, stdioTool, textOf } from './stdio-tool.ts';

const tool = stdioTool();
const pids = () => tool.journalled().filter((line) => line.startsWith('pid '));

describe('a command whose clients have a session each', () => {
  it('has a process for each, which sees nothing of the others', async () => {
    await tool.start();
    const [first, second] = [await tool.session(), await tool.session()];
    expect(pids()).toHaveLength(3);
    const count = async (session: Readonly<Record<string, string>>) =>
      textOf(await tool.post(callOf('count'), session));
    expect([await count(first), await count(first), await count(second), await count(first)]).toEqual([1, 2, 1, 3]);
  });

  it('gives ids that nobody can guess', async () => {
    await tool.start();
    const ids = [await tool.session(), await tool.session()].map((session) => session['mcp-session-id']!);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^[\w-]{24}$/);
    const [made] = ids.map((id) => `${id.slice(0, -1)}${id.endsWith('A') ? 'B' : 'A'}`);
    const reply = await tool.post(callOf('echo', {}, 'mine'), { 'mcp-session-id': made! });
    expect([reply.status, jsonOf(reply)]).toMatchObject([404, { id: 'mine', error: { code: -32001 } }]);
    for (const method of ['GET', 'DELETE']) {
      const other = await tool.end.call({ ':path': '/tool/t', ':method': method, 'mcp-session-id': made! });
      expect([other.status, jsonOf(other).error.code]).toEqual([404, -32001]);
    }
  });

  it('passes on what a client says of itself, to its own process alone', async () => {
    await tool.start();
    const [first, second] = [await tool.session(), await tool.session()];
    expect((await tool.post({ jsonrpc: '2.0', method: 'notifications/initialized' }, first)).status).toBe(202);
    await tool.post({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'debug' } }, second);
    await Promise.all([first, second].map((session) => tool.post(callOf('echo'), session)));
    // The proxy's own process had the first one.
    expect(tool.got('notifications/initialized')).toHaveLength(2);
    expect(tool.got('logging/setLevel')).toHaveLength(1);
  });

  it('lists to somebody without a session, and does nothing else for him', async () => {
    await tool.start();
    const listed = await tool.post({ jsonrpc: '2.0', id: 'l', method: 'tools/list' });
    expect([listed.status, jsonOf(listed)]).toMatchObject([
      200,
      { id: 'l', result: { tools: [{ name: 'echo' }, { name: 'env' }, { name: 'slow' }] } },
    ]);
    for (const method of ['ping', 'resources/list', 'resources/templates/list', 'prompts/list'])
      expect(jsonOf(await tool.post({ jsonrpc: '2.0', id: 2, method })).error.code).toBe(-32601);
    const refused = [
      callOf('count', {}, 3),
      { jsonrpc: '2.0', id: 3, method: 'resources/read', params: {} },
      { jsonrpc: '2.0', id: 3, method: 'logging/setLevel', params: {} },
      { jsonrpc: '2.0', id: 3, method: 'server/discover' },
      { jsonrpc: '2.0', method: 'notifications/own/kind' },
      { jsonrpc: '2.0', id: 3, result: {} },
    ];
    for (const message of refused) {
      const reply = await tool.post(message);
      expect([reply.status, jsonOf(reply).error]).toEqual([
        400,
        { code: -32600, message: 'there is no session. Begin with initialize' },
      ]);
    }
    expect((await tool.end.call({ ':path': '/tool/t', ':method': 'GET', accept: 'text/event-stream' })).status).toBe(
      405,
    );
    await tool.post({ jsonrpc: '2.0', id: 4, method: 'ping' });
    expect(tool.got('own/kind').concat(tool.got('"count"'), tool.got('setLevel'))).toEqual([]);
  });

  it('does not take two requests of one client under one id', async () => {
    await tool.start();
    const session = await tool.session();
    const held = tool.open(callOf('never', {}, 5), session);
    const again = await tool.post(callOf('echo', {}, 5), session);
    expect([again.status, jsonOf(again)]).toMatchObject([400, { id: 5, error: { code: -32600 } }]);
    held.close();
  });

  it('answers for a process that wants no session, and gives no id', async () => {
    await tool.start();
    const reply = await tool.post({ ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion: 'refuse' } });
    expect([reply.status, jsonOf(reply)]).toMatchObject([200, { id: 0, error: { code: -32602 } }]);
    expect(reply.headers).not.toHaveProperty('mcp-session-id');
  });
});
