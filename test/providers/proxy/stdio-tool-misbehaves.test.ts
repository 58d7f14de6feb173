import { describe, expect, it } from 'vitest';
import { BOTH, callOf, jsonOf, stdioTool, textOf } from './stdio-tool.ts';

const tool = stdioTool({ shared: true });

describe('a tool that misbehaves', () => {
  it('writes garbage: it is logged, shortened, and passed over', async () => {
    await tool.start(['start=garbage']);
    expect(textOf(await tool.post(callOf('echo', { a: 1 })))).toEqual({ a: 1 });
    expect(textOf(await tool.post(callOf('huge')))).toBeNull();
    for (const text of ['Listening on stdio!', '[1,2]', '{"neither":1}'])
      expect(
        await tool.running.logged('the tool wrote a line that is not JSON-RPC; the line is ignored'),
      ).toMatchObject({
        text,
      });
    await tool.running.logged('the tool wrote a line that is too long; the line is ignored');
  });

  // The TypeScript SDK writes the id of a response last.
  it.each(['version id result', 'result version id', 'result id version'])(
    'answers with more than 4 MiB: only the one who asked gets an error, at once (%s)',
    async (order) => {
      await tool.start();
      const other = tool.post(callOf('never', {}, 'other'));
      const reply = await tool.post(callOf('large', { order }, 'a'));
      expect(reply.status).toBe(200);
      expect(jsonOf(reply)).toMatchObject({
        id: 'a',
        error: { code: -32000, message: expect.stringContaining('longer than 4194304 bytes') as unknown },
      });
      await tool.running.logged('the tool wrote an answer that is too long; its client gets an error');
      await tool.post(callOf('crash', {}, 'end'));
      expect(jsonOf(await other)).toMatchObject({ id: 'other', error: { code: -32000 } });
    },
  );

  it('answers with more than 4 MiB and no id: the only one who waits gets an error, and of two nobody', async () => {
    await tool.start();
    const alone = await tool.post(callOf('large', { order: 'version result' }, 'alone'));
    expect(jsonOf(alone)).toMatchObject({ id: 'alone', error: { code: -32000 } });
    const two = [callOf('never', {}, 'b'), callOf('large', { order: 'version result' }, 'c')].map((call) =>
      tool.post(call),
    );
    await tool.running.logged('the request of the answer is not known, so its client waits');
    await tool.post(callOf('crash', {}, 'end'));
    for (const reply of await Promise.all(two)) expect(reply.status).toBe(502);
  });

  it.each([
    ['a key twice', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{},"result":{}}`, 'duplicate key'],
    ['NaN', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{"mean":NaN}}`, 'not valid JSON'],
    ['NaN before the id', (id: number) => `{"result":{"mean":NaN},"jsonrpc":"2.0","id":${id}}`, 'not valid JSON'],
    ['half of it', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{"text":"half of`, 'not valid JSON'],
  ])('answers with %s: the one who asked gets an error, at once', async (_what, line, words) => {
    await tool.start();
    await tool.post(callOf('echo'));
    const [before] = tool.got('tools/call').map(({ id }) => Number(id));
    const other = tool.post(callOf('never', {}, 'other'));
    await expect.poll(() => tool.got('"never"')).toHaveLength(1);
    const reply = await tool.post(callOf('line', { line: line(before! + 2) }, 'a'));
    expect(jsonOf(reply)).toMatchObject({
      id: 'a',
      error: { code: -32000, message: expect.stringContaining(words) as unknown },
    });
    await tool.running.logged('the tool wrote an answer that cannot be read; its client gets an error');
    await tool.post(callOf('crash', {}, 'end'));
    expect((await other).status).toBe(502);
  });

  it('answers so in a session: the one who asked gets an error, and the session goes on', async () => {
    await tool.start([], {}, { shared: false });
    const session = await tool.session();
    for (const call of [
      callOf('large', { order: 'version id result' }, 'a'),
      callOf('large', { order: 'result version id' }, 'b'),
      callOf('large', { order: 'result version' }, 'c'),
      callOf('line', { line: '{"jsonrpc":"2.0","id":"d","result":{},"result":{}}' }, 'd'),
    ])
      expect(jsonOf(await tool.post(call, { ...session, accept: 'application/json' }))).toMatchObject({
        id: call.id,
        error: { code: -32000 },
      });
    const after = await tool.post(callOf('echo', { a: 1 }, 'e'), { ...session, accept: 'application/json' });
    expect(textOf(after)).toEqual({ a: 1 });
  });

  it('writes a batch: each element is a message', async () => {
    await tool.start([], {}, { shared: false });
    const session = await tool.session();
    const batch = [
      { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'first' } },
      7,
      { jsonrpc: '2.0', id: 'a', result: { n: 12 } },
    ];
    const reply = await tool.post(callOf('line', { line: JSON.stringify(batch) }, 'a'), session);
    const events = reply.body
      .toString()
      .trim()
      .split('\n\n')
      .map((event) => JSON.parse(event.replace('event: message\ndata: ', '')) as unknown);
    expect(events).toEqual([batch[0], batch[2]]);
  });

  it('complains: its standard error is in the log, in lines of bounded length', async () => {
    await tool.start();
    await tool.post(callOf('noise'));
    expect(await tool.running.logged('the tool says')).toMatchObject({ service: 't', text: 'a complaint' });
    expect(String((await tool.running.logged('the tool says'))['text'])).toBe(`${'x'.repeat(2_048)}…`);
  });

  it('crashes: what was asked of it fails with the mark, and it is started again', async () => {
    await tool.start();
    const [crashed, beside] = await Promise.all([
      tool.post(callOf('crash', {}, 'a')),
      tool.post(callOf('never', {}, 'b')),
    ]);
    for (const [reply, id] of [
      [crashed, 'a'],
      [beside, 'b'],
    ] as const) {
      expect([reply.status, reply.headers['x-tollgate-failure']]).toEqual([502, 'upstream_broken']);
      expect(jsonOf(reply)).toMatchObject({ id, error: { code: -32000 } });
    }
    expect(await tool.running.logged('the tool ended')).toMatchObject({ how: 'exited with code 9' });
    await tool.running.logged('tool is running');
    await tool.running.logged('tool is running');
    expect(textOf(await tool.post(callOf('echo', { a: 2 })))).toEqual({ a: 2 });
  });

  it('crashes in the middle of a stream: the stream is reset', async () => {
    await tool.start();
    const held = tool
      .post(callOf('slow', { hold: true }, 1, { progressToken: 1 }), { accept: BOTH })
      .catch((error: Error) => error.message);
    await tool.post(callOf('echo'));
    await tool.post(callOf('crash'));
    expect(await held).toContain('after status 200');
  });

  it('does not start: calls fail at once, and the log says how it ended', async () => {
    await tool.start(['start=fail']);
    expect(await tool.running.logged('the tool ended')).toMatchObject({ how: 'exited with code 7' });
    const reply = await tool.post(callOf('echo', {}, 'id'));
    expect([reply.status, jsonOf(reply).id]).toEqual([502, 'id']);
    expect(['upstream_unreachable', 'upstream_broken']).toContain(reply.headers['x-tollgate-failure']);
  });

  it('is no program at all: the same', async () => {
    await tool.start([], {}, { command: '/nowhere/at/all' });
    expect(await tool.running.logged('the tool ended')).toMatchObject({ how: 'cannot be started (ENOENT)' });
    expect((await tool.post(callOf('echo'))).headers['x-tollgate-failure']).toBe('upstream_unreachable');
  });
});
