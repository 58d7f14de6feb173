import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

let provider: TestProvider;
let release: PromiseWithResolvers<void>;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
const start = async (limits = {}) => {
  running = runProxy({ url: router.url, services: [modelAt('m', provider.url)], options: { limits } });
  end = await router.next();
  await end.accept();
};
beforeEach(async () => {
  provider = await startProvider();
  release = Promise.withResolvers();
  provider.hold(release.promise);
  router = await startTunnelRouter();
});
afterEach(async () => {
  running.proxy.kill();
  await Promise.all([router.stop(), provider.stop()]);
});

const PATH = { ':path': '/model/m/chat/completions', 'content-type': 'application/json' };
const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: '!tokens:2000' }] });
/** Begins a call and resolves when its upstream has it. */
const beginCall = async (on: RouterEnd) => {
  const before = provider.log.length;
  const reply = on.call(PATH, body);
  while (provider.log.length === before) await on.call({ ':path': '/model/none' });
  return { reply };
};

describe('a proxy that is asked to stop', () => {
  it('says so, takes no more calls, finishes those that run, and ends with code 0', async () => {
    await start();
    const { reply } = await beginCall(end);
    const closed = running.proxy.close();
    expect(await end.heard()).toEqual({ type: 'draining' });
    const refused = await end.call(PATH, body);
    expect([refused.status, refused.headers['x-tollgate-failure']]).toEqual([503, 'draining']);
    release.resolve();
    expect((await reply).body.toString()).toContain('[DONE]');
    expect(await closed).toBe(0);
    await end.closed;
    expect(router.dials).toHaveLength(1);
  });

  it('does not wait for calls that do not end', async () => {
    await start({ drainMs: 50 });
    const stream = end.open(PATH, body);
    const gone = once(stream, 'close');
    while (provider.log.length === 0) await end.call({ ':path': '/model/none' });
    expect(await running.proxy.close()).toBe(0);
    await gone;
    expect(stream.readableEnded).toBe(false);
  });

  it('does not wait for such calls either if the router sent GOAWAY before', async () => {
    await start({ drainMs: 50 });
    const { reply } = await beginCall(end);
    const cut = reply.catch((error: Error) => error.message);
    end.session.goaway();
    const next = await router.next();
    await next.accept();
    expect(await running.proxy.close()).toBe(0);
    expect(await cut).toContain('the reply was reset');
  });

  it('ends at once where nothing runs, and while there is no router', async () => {
    await start();
    expect(await running.proxy.close()).toBe(0);
    const { port } = router;
    await router.stop();
    running = runProxy({ url: router.url, services: [] });
    await running.logged('no connection to the router');
    expect(await running.proxy.close()).toBe(0);
    router = await startTunnelRouter({ port });
  });
});

describe('a router that stops', () => {
  it('keeps its running calls while the proxy is connected elsewhere already', async () => {
    await start();
    const { reply } = await beginCall(end);
    end.say({ type: 'draining' });
    const next = await router.next();
    await next.accept();
    // Seen from the registry the old connection is superseded now: it is not a reason to end.
    end.say({ type: 'replaced' });
    const { reply: second } = await beginCall(next);
    release.resolve();
    for (const each of [await reply, await second]) expect(each.body.toString()).toContain('[DONE]');
    end.session.close();
    await end.closed;
    expect(router.dials).toHaveLength(2);
    expect(await running.proxy.close()).toBe(0);
  });
});
