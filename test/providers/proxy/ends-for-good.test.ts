import { afterEach, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type TunnelRouter, type TunnelRouterOptions } from '../../support/tunnel-router.ts';

let router: TunnelRouter;
let running: RunningProxy;
afterEach(async () => {
  running.proxy.kill();
  await router.stop();
});

async function start(options: TunnelRouterOptions = {}): Promise<void> {
  router = await startTunnelRouter(options);
  running = runProxy({
    url: router.url,
    services: [modelAt('m', 'http://127.0.0.1:9/v1')],
    options: { limits: { unauthorizedMs: 20 } },
  });
}

const UNKNOWN_KEY = { status: 401, body: '{"error":{"message":"Invalid API key"}}' };

it('replaced by a newer proxy: code 3, and it does not dial again', async () => {
  await start();
  const end = await router.next();
  await end.accept();
  end.say({ type: 'replaced' });
  expect(await running.proxy.closed).toBe(3);
  await end.closed;
  await running.logged('another proxy with the same credential took over; this proxy stops');
  expect(router.dials).toHaveLength(1);
});

it('refused: code 1, with every problem', async () => {
  await start();
  const end = await router.next();
  end.say({ type: 'welcome', provider: 'p', account: 'a', challenge: 'c', version: '1' });
  await end.heard();
  const problems = [1, 2].map((index) => ({
    key: `models[${index}].name`,
    wrong: `wrong ${index}`,
    right: `right ${index}`,
  }));
  end.say({ type: 'refused', message: 'The registration has 2 problems', problems });
  expect(await running.proxy.closed).toBe(1);
  for (const problem of problems) expect(await running.logged('the router refused')).toMatchObject(problem);
  expect((await running.logged('the router refused the services; correct the file and start again'))['why']).toBe(
    'The registration has 2 problems',
  );
  expect(router.dials).toHaveLength(1);
});

it('not allowed: code 2, with the words of the router', async () => {
  await start({ reject: () => ({ status: 403, body: '{"error":{"message":"This key may not provide"}}' }) });
  expect(await running.proxy.closed).toBe(2);
  expect(await running.logged('this provider may not connect here')).toMatchObject({
    message: 'This key may not provide',
  });
});

it('a wrong API key: code 2, after three dials', async () => {
  await start({ reject: () => UNKNOWN_KEY });
  expect(await running.proxy.closed).toBe(2);
  const line = await running.logged('the router does not accept this API key; correct router.api_key and start again');
  expect(line).toMatchObject({ status: 401, message: 'Invalid API key' });
  expect(router.dials).toHaveLength(3);
});

it('a right API key that is refused for a while is tried on', async () => {
  let refusals = 0;
  await start({ reject: () => (refusals-- > 0 ? UNKNOWN_KEY : null) });
  const end = await router.next();
  await end.accept();
  await running.logged('ready: calls can come');
  refusals = 5;
  end.session.destroy();
  for (let refused = 0; refused < 5; refused += 1) await running.logged('the router does not accept the credential');
  await (await router.next()).accept();
  expect(router.dials).toHaveLength(7);
});
