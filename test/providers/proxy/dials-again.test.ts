import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.ts';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type TunnelRouter, type TunnelRouterOptions } from '../../support/tunnel-router.ts';

let router: TunnelRouter;
let running: RunningProxy;
let faults: FaultProxy | null = null;
afterEach(async () => {
  running.proxy.kill();
  await router.stop();
  await faults?.stop();
  faults = null;
});

const services = [modelAt('m', 'http://127.0.0.1:9/v1')];
async function start(options: TunnelRouterOptions = {}): Promise<void> {
  router = await startTunnelRouter(options);
  running = runProxy({ url: router.url, services });
}

describe('the proxy dials again', () => {
  it('when the router restarts, as often as it does', async () => {
    await start();
    for (let round = 0; round < 3; round += 1) {
      await (await router.next()).accept();
      await running.logged('ready: calls can come');
      const { port } = router;
      await router.stop();
      expect(await running.logged('no connection to the router')).toHaveProperty('again_in_ms');
      router = await startTunnelRouter({ port });
    }
    await (await router.next()).accept();
    await running.logged('ready: calls can come');
  });

  it('when the control stream ends', async () => {
    await start();
    const end = await router.next();
    await end.accept();
    end.session.destroy();
    await (await router.next()).accept();
  });

  it('when the router falls silent, and not while it answers', async () => {
    router = await startTunnelRouter();
    faults = await startFaultProxy({ port: router.port });
    running = runProxy({ url: `http://127.0.0.1:${faults.port}`, services, options: { limits: { silenceMs: 300 } } });
    const end = await router.next();
    await end.accept();
    // Two thirds of the silence that is allowed, three times over.
    for (let pings = 0; pings < 6; pings += 1) await once(end.socket, 'ping');
    expect(router.dials).toHaveLength(1);
    faults.down.blackhole = true;
    expect((await running.logged('no connection to the router'))['why']).toBe('the router was silent for 0.3 s');
    faults.heal();
    await (await router.next()).accept();
  });

  it('after an answer that is no tunnel, with what the router says', async () => {
    let busy = 2;
    await start({ reject: () => (busy-- > 0 ? { status: 503, body: '{"error":{"message":"starting up"}}' } : null) });
    expect(await running.logged('the router does not accept a connection now')).toMatchObject({
      status: 503,
      message: 'starting up',
    });
    await (await router.next()).accept();
    expect(router.dials).toHaveLength(3);
  });

  it('not before the time that the router asks for', async () => {
    let busy = 1;
    await start({ reject: () => (busy-- > 0 ? { status: 429, body: '{}', headers: { 'retry-after': '1' } } : null) });
    expect((await running.logged('the router does not accept a connection now'))['again_in_ms']).toBeGreaterThanOrEqual(
      1_000,
    );
    await (await router.next()).accept();
  });

  it('at an address where no router is, with a hint', async () => {
    router = await startTunnelRouter();
    running = runProxy({ url: `${router.url}/elsewhere`, services });
    expect(await running.logged('there is no router for providers at this address')).toMatchObject({
      status: 404,
      hint: 'is router.url right?',
    });
  });

  it('at an address with https where no TLS is spoken, with a hint', async () => {
    router = await startTunnelRouter();
    running = runProxy({ url: router.url.replace('http:', 'https:'), services });
    expect(await running.logged('no connection to the router')).toMatchObject({
      why: "the server doesn't speak TLS; did you mean http://?",
    });
  });

  it('when what answers is no router at all', async () => {
    router = await startTunnelRouter();
    faults = await startFaultProxy({ port: router.port });
    faults.refuse = true;
    running = runProxy({ url: `http://127.0.0.1:${faults.port}`, services });
    await running.logged('no connection to the router');
    await running.logged('no connection to the router');
    faults.heal();
    await (await router.next()).accept();
  });
});

describe('a credential that the router does not accept', () => {
  it('is tried again, slowly, with the words of the router', async () => {
    const body = JSON.stringify({ error: { message: 'Invalid API key' } });
    let times = 2;
    router = await startTunnelRouter({ reject: () => (times-- > 0 ? { status: 401, body } : null) });
    running = runProxy({ url: router.url, services, options: { limits: { unauthorizedMs: 20 } } });
    const line = await running.logged('the router does not accept the credential');
    expect(line).toMatchObject({ status: 401, message: 'Invalid API key', again_in_ms: 20 });
    expect(line).not.toHaveProperty('hint');
    await (await router.next()).accept();
  });

  it.each([
    ['ahead of', -600_000],
    ['behind', 600_000],
  ])('with a hint where the clock is %s the router', async (word, byMs) => {
    const headers = () => ({ date: new Date(Date.now() + byMs).toUTCString() });
    await start({ reject: () => ({ status: 401, body: '{}', headers: headers() }) });
    expect((await running.logged('the router does not accept the credential'))['hint']).toMatch(
      new RegExp(`^the clock of this machine is (599|600|601) s ${word}`),
    );
  });
});
