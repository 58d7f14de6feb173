import { describe, expect, it } from 'vitest';
import { BOTH, callOf, INITIALIZE, jsonOf, PATIENT, readEvents, stdioTool } from './stdio-tool.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const tool = stdioTool();
const isGone = (pid: number) => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};
/** Pids of all processes so far: the first is nobody's. */
const pids = () =>
  tool.journalled().flatMap((line) => (/^(?:pid|child) /.test(line) ? [Number(line.split(' ')[1])] : []));
async function gone(pid: number): Promise<void> {
  await expect.poll(() => isGone(pid), { interval: 10, timeout: 60_000 }).toBe(true);
}
const remove = (session: Readonly<Record<string, string>>) =>
  tool.end.call({ ':path': '/tool/t', ':method': 'DELETE', ...session });

describe('a session ends', () => {
  it('with DELETE, its process and its stream with it', async () => {
    await tool.start();
    const session = await tool.session();
    const own = readEvents(tool.open(null, session));
    expect(await own.status).toBe(200);
    expect((await remove(session)).status).toBe(200);
    expect(isGone(pids()[1]!)).toBe(true);
    expect(await own.over).toBe('complete');
    const late = await tool.post(callOf('echo'), session);
    expect([late.status, jsonOf(late).error.code]).toEqual([404, -32001]);
    expect((await remove(session)).status).toBe(404);
  });

  it('when nobody used it for a while', async () => {
    await tool.start([], {}, { sessionIdleMs: 100 });
    const session = await tool.session();
    await gone(pids()[1]!);
    expect((await tool.post(callOf('echo'), session)).status).toBe(404);
  });

  it('not while a call runs, nor while its client listens', async () => {
    await tool.start([], {}, { sessionIdleMs: 1_000 });
    const call = tool.open(callOf('never'), await tool.session());
    const listens = await tool.session();
    const own = tool.open(null, listens);
    await tool.post(callOf('echo'), listens);
    const idle = await tool.session();
    await gone(pids()[3]!);
    expect((await tool.post(callOf('echo'), idle)).status).toBe(404);
    expect(pids().slice(1, 3).map(isGone)).toEqual([false, false]);
    call.close();
    own.close();
    await Promise.all(pids().slice(1, 3).map(gone));
  });

  it('when its process dies: what ran is broken off, and others go on', async () => {
    await tool.start();
    const [session, other] = [await tool.session(), await tool.session()];
    const own = readEvents(tool.open(null, session));
    const streamed = readEvents(tool.open(callOf('slow', { hold: true }, 's', { progressToken: 1 }), session));
    await streamed.next();
    const [crashed, beside] = await Promise.all([
      tool.post(callOf('crash', {}, 'a'), session),
      tool.post(callOf('never', {}, 'b'), session),
    ]);
    for (const [reply, id] of [
      [crashed, 'a'],
      [beside, 'b'],
    ] as const) {
      expect([reply.status, reply.headers['x-tollgate-failure']]).toEqual([502, 'upstream_broken']);
      expect(jsonOf(reply)).toMatchObject({ id, error: { code: -32000 } });
    }
    expect([await streamed.over, await own.over]).toEqual(['broken off', 'broken off']);
    expect((await tool.post(callOf('echo'), session)).status).toBe(404);
    expect((await tool.post(callOf('echo'), other)).status).toBe(200);
    expect(await tool.running.logged('the process of a session ended')).toMatchObject({
      service: 't',
      how: 'exited with code 9',
    });
  });

  it('when the client did not wait for its beginning', async () => {
    await tool.start(['start=slow']);
    await tool.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const begun = tool.open(INITIALIZE, { accept: BOTH });
    await expect.poll(() => pids().length, { interval: 10 }).toBe(2);
    begun.close(8);
    await gone(pids()[1]!);
  });

  it('when its client does not take what it is asked', async () => {
    await tool.start();
    const session = { ...(await tool.session()), accept: 'application/json' };
    const question = (id: number) =>
      JSON.stringify({ jsonrpc: '2.0', id, method: 'sampling/createMessage', params: 'x'.repeat(3_000_000) });
    for (const id of [1, 2, 3]) tool.open(callOf('line', { line: question(id) }, id), session);
    await gone(pids()[1]!);
    expect((await tool.post(callOf('echo'), session)).status).toBe(404);
  });

  it('not when its client left calls whose large answers nobody takes', async () => {
    await tool.start();
    const session = { ...(await tool.session()), accept: 'application/json' };
    for (const id of ['a', 'b', 'c', 'd']) {
      const left = tool.open(callOf('never', {}, id), session);
      await expect.poll(() => tool.got(`"id":"${id}"`).length, { interval: 10 }).toBe(1);
      left.close(8);
      const line = JSON.stringify({ jsonrpc: '2.0', id, result: { text: 'x'.repeat(3_000_000) } });
      tool.open(callOf('line', { line }, `line ${id}`), session);
      // A small call would overtake a large one.
      await expect.poll(() => tool.got(`"id":"line ${id}"`).length, { interval: 10 }).toBe(1);
    }
    expect((await tool.post(callOf('echo'), session)).status).toBe(200);
    const own = readEvents(tool.open(null, { ...session, accept: BOTH }));
    expect(JSON.parse(await own.next())).toMatchObject({ id: 'd' });
  });

  it('before another can begin where as many as may be are in use', async () => {
    await tool.start([], {}, { sessionsMax: 2 });
    const [first, second] = [await tool.session(), await tool.session()];
    for (const session of [first, second]) await readEvents(tool.open(null, session)).status;
    const refused = await tool.post({ ...INITIALIZE, id: 'third' }, { accept: BOTH });
    expect([refused.status, Number(refused.headers['retry-after'])]).toEqual([503, 5]);
    expect(jsonOf(refused)).toMatchObject({
      id: 'third',
      error: { code: -32000, message: expect.stringContaining('sessions') },
    });
    expect(refused.headers).not.toHaveProperty('x-tollgate-failure');
    await remove(first);
    await tool.session();
    expect(pids()).toHaveLength(4);
  });

  it('with the proxy, in good order, and nothing that a process started is left', async () => {
    await tool.start(['stop=careless'], {}, {}, PATIENT);
    const session = await tool.session();
    await tool.session();
    const own = readEvents(tool.open(null, session));
    await own.status;
    const begun = performance.now();
    expect(await tool.running.proxy.close()).toBe(0);
    // The stream, which would never end, does not hold it up for the 30 s that calls may take.
    expect(performance.now() - begun).toBeLessThan(atThisLoad(20_000));
    expect(tool.journalled().filter((line) => line === 'end of input')).toHaveLength(3);
    expect(pids()).toHaveLength(6);
    await Promise.all(pids().map(gone));
  });

  it('with the proxy, by force where a process does not want to', async () => {
    await tool.start(['stop=stubborn'], {}, {}, { termMs: atThisLoad(200), killMs: atThisLoad(1_000) });
    await tool.session();
    expect(await tool.running.proxy.close()).toBe(0);
    expect(tool.journalled()).toContain('SIGTERM');
    expect(pids()).toHaveLength(4);
    await Promise.all(pids().map(gone));
  });

  it('with a proxy that is killed', async () => {
    await tool.start();
    await tool.session();
    tool.running.proxy.kill();
    await Promise.all(pids().map(gone));
    expect(tool.journalled()).not.toContain('end of input');
  });
});
