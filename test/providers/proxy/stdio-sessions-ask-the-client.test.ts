import { describe, expect, it } from 'vitest';
import { callOf, readEvents, stdioTool, textOf, type EventReader } from './stdio-tool.ts';

const tool = stdioTool();
type Said = {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: { content: { text: string }[] };
};
const said = async (reader: EventReader) => JSON.parse(await reader.next()) as Said;
const NAME = { action: 'accept', content: { name: 'Ada' } };

describe('in a session the server may ask its client', () => {
  it('on the stream of the call, and gets the answer', async () => {
    await tool.start();
    const session = await tool.session();
    const call = readEvents(tool.open(callOf('elicit', {}, 7), session));
    expect(await said(call)).toEqual({
      jsonrpc: '2.0',
      id: 'question-7',
      method: 'elicitation/create',
      params: { message: 'your name?' },
    });
    expect((await tool.post({ jsonrpc: '2.0', id: 'question-7', result: NAME }, session)).status).toBe(202);
    const { id, result } = await said(call);
    expect([id, JSON.parse(JSON.parse(result!.content[0]!.text) as string)]).toEqual([
      7,
      { jsonrpc: '2.0', id: 'question-7', result: NAME },
    ]);
    expect(await call.over).toBe('complete');
  });

  it('on the newest of several', async () => {
    await tool.start();
    const session = await tool.session();
    const older = readEvents(tool.open(callOf('never', {}, 1), session));
    const newer = readEvents(tool.open(callOf('elicit', { method: 'sampling/createMessage' }, 2), session));
    expect(await said(newer)).toMatchObject({ id: 'question-2', method: 'sampling/createMessage' });
    await tool.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, session);
    expect(await older.over).toBe('complete');
    await expect(older.next()).rejects.toThrow();
  });

  it('on the stream of its own where the call takes none', async () => {
    await tool.start();
    const session = await tool.session();
    const own = readEvents(tool.open(null, session));
    await own.status;
    const called = tool.post(callOf('elicit', {}, 7), { ...session, accept: 'application/json' });
    expect(await said(own)).toMatchObject({ id: 'question-7' });
    await tool.post({ jsonrpc: '2.0', id: 'question-7', result: NAME }, session);
    expect((await called).headers['content-type']).toBe('application/json');
  });

  it('who hears it when he listens next, or calls next', async () => {
    await tool.start();
    const session = await tool.session();
    const plain = { ...session, accept: 'application/json' };
    const calls = [tool.post(callOf('elicit', {}, 1), plain), tool.post(callOf('elicit', {}, 2), plain)];
    await expect.poll(() => tool.got('"elicit"').length, { interval: 10 }).toBe(2);
    const call = readEvents(tool.open(callOf('never', {}, 3), session));
    expect([await said(call), await said(call)]).toMatchObject([{ id: 'question-1' }, { id: 'question-2' }]);
    for (const id of ['question-1', 'question-2']) await tool.post({ jsonrpc: '2.0', id, result: NAME }, session);
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200]);

    const late = tool.post(callOf('elicit', {}, 4), plain);
    await tool.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } }, session);
    const own = readEvents(tool.open(null, session));
    expect(await said(own)).toMatchObject({ id: 'question-4' });
    await tool.post({ jsonrpc: '2.0', id: 'question-4', result: NAME }, session);
    expect((await late).status).toBe(200);
  });

  it('and is not told what it did not ask', async () => {
    await tool.start();
    const session = await tool.session();
    for (const id of ['question-1', 0, 1])
      expect((await tool.post({ jsonrpc: '2.0', id, result: NAME }, session)).status).toBe(202);
    await tool.post(callOf('echo', {}, 9), session);
    expect(tool.got('Ada')).toEqual([]);
  });

  it('and is not told what it gave up to ask', async () => {
    await tool.start();
    const session = await tool.session();
    const call = readEvents(tool.open(callOf('elicit', {}, 7), session));
    expect(await said(call)).toMatchObject({ id: 'question-7' });
    const given = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'question-7' } };
    const asking = { jsonrpc: '2.0', id: 'next', method: 'ping' };
    const line = [given, asking].map((each) => JSON.stringify(each)).join('\n');
    expect(await said(readEvents(tool.open(callOf('line', { line }, 8), session)))).toMatchObject({ id: 'next' });
    await tool.post({ jsonrpc: '2.0', id: 'question-7', result: NAME }, session);
    await tool.post(callOf('echo', {}, 9), session);
    expect(tool.got('Ada')).toEqual([]);
  });

  it('a thousand times without an answer, and then the oldest is refused', async () => {
    await tool.start();
    const session = await tool.session();
    const pings = Array.from({ length: 1_001 }, (_, id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));
    const call = readEvents(tool.open(callOf('line', { line: pings.join('\n') }, 'c'), session));
    for (const id of pings.keys()) expect(await said(call)).toMatchObject({ id });
    for (const id of [0, 1, 1_000]) await tool.post({ jsonrpc: '2.0', id, result: NAME }, session);
    await expect.poll(() => tool.got('Ada').map(({ id }) => id), { interval: 10 }).toEqual([1, 1_000]);
    expect(tool.got('"error"')).toMatchObject([{ id: 0, error: { code: -32000 } }]);
  });

  it('for directories only where the provider allows it, since they are his', async () => {
    await tool.start();
    const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"x":1e0, "roots":{"listChanged":true},"elicitation":{}}}}`;
    const { headers } = await tool.post(initialize);
    const session = { 'mcp-session-id': String(headers['mcp-session-id']), accept: 'text/event-stream' };
    expect(tool.journalled()).toContain(
      'line {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"x":1e0,"elicitation":{}}}}',
    );
    const reply = await tool.post(callOf('elicit', { method: 'roots/list' }, 1), session);
    expect(JSON.parse(textOf(reply) as string)).toMatchObject({ id: 'question-1', error: { code: -32601 } });
  });

  it('for directories where he does', async () => {
    await tool.start([], {}, { roots: true });
    const session = await tool.session();
    const call = readEvents(tool.open(callOf('elicit', { method: 'roots/list' }, 1), session));
    expect(await said(call)).toMatchObject({ id: 'question-1', method: 'roots/list' });
  });
});

describe('what a server tells its client', () => {
  const note = (data: string) => ({
    line: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data } }),
  });

  it('goes to the call that it is about, or to the only one', async () => {
    await tool.start();
    const session = await tool.session();
    const own = readEvents(tool.open(null, session));
    await own.status;
    const only = readEvents(tool.open(callOf('slow', { a: 1 }, 1, { progressToken: 'p' }), session));
    expect([await said(only), await said(only), await said(only), await said(only)]).toMatchObject([
      { method: 'notifications/message' },
      { params: { progressToken: 'p', progress: 1 } },
      { params: { progressToken: 'p', progress: 2 } },
      { id: 1 },
    ]);
    readEvents(tool.open(callOf('never', {}, 2), session));
    const second = readEvents(tool.open(callOf('slow', {}, 3, { progressToken: 'q' }), session));
    expect([await said(second), await said(second), await said(second)]).toMatchObject([
      { params: { progress: 1 } },
      { params: { progress: 2 } },
      { id: 3 },
    ]);
    expect(await said(own)).toMatchObject({ method: 'notifications/message' });
  });

  it('waits for a client who does not listen, and the oldest of too much is lost', async () => {
    await tool.start();
    const session = await tool.session();
    // Calls that are never answered: what comes meanwhile is about none of them.
    const notes = ['first', 'x'.repeat(255_000), 'y'.repeat(10_000), 'last'];
    for (const call of [callOf('never', {}, 'a'), callOf('never', {}, 'b')]) tool.open(call, session);
    await expect.poll(() => tool.got('"never"').length, { interval: 10 }).toBe(2);
    for (const [id, data] of notes.entries()) {
      tool.open(callOf('line', note(data), id), session);
      // In their order: each comes by a connection of its own.
      await expect.poll(() => tool.got('"line"').length, { interval: 10 }).toBe(id + 1);
    }
    await tool.post(callOf('echo', {}, 'e'), { ...session, accept: 'application/json' });
    const own = readEvents(tool.open(null, session));
    expect((await said(own)).params!['data']).toBe(notes[2]);
    expect((await said(own)).params!['data']).toBe('last');
  });

  it('is the response as well, where the call was cut off', async () => {
    await tool.start();
    const session = await tool.session();
    const cut = tool.open(callOf('elicit', {}, 1), session);
    const reader = readEvents(cut);
    await said(reader);
    cut.close(8);
    await reader.over;
    await tool.post({ jsonrpc: '2.0', id: 'question-1', result: NAME }, session);
    expect(await said(readEvents(tool.open(null, session)))).toMatchObject({ id: 1, result: {} });
  });

  it('has one stream of its own', async () => {
    await tool.start();
    const session = await tool.session();
    const own = tool.open(null, session);
    expect(await readEvents(own).status).toBe(200);
    expect(await readEvents(tool.open(null, session)).status).toBe(409);
    own.close();
    await expect.poll(() => readEvents(tool.open(null, session)).status, { interval: 10 }).toBe(200);
    expect(
      await readEvents(tool.open(null, { 'mcp-session-id': session['mcp-session-id']!, accept: 'application/json' }))
        .status,
    ).toBe(406);
  });
});

describe('a client that cancels', () => {
  it.each([
    ['events', {}, 'complete'],
    ['JSON', { accept: 'application/json' }, 'complete'],
  ])('is heard by the process, and its call ends (%s)', async (_kind, accept, how) => {
    await tool.start();
    const session = await tool.session();
    const call = readEvents(tool.open(callOf('never', {}, 'c'), { ...session, ...accept }));
    const cancelled = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 'c', reason: 'enough' },
    };
    await tool.post(cancelled, session);
    expect(await call.over).toBe(how);
    await tool.post(callOf('echo'), session);
    expect(tool.got('notifications/cancelled')).toEqual([cancelled]);
  });
});
