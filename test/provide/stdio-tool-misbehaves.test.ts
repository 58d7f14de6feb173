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
