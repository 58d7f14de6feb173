import Fastify from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { healthRoutes } from '#observe';
import type { Readiness } from '../../../src/console/observe/health.ts';

let close = async (): Promise<void> => {};
afterEach(() => close());

async function serve(ready: () => Readiness | Promise<Readiness>, timeoutMs = 2_000): Promise<string> {
  const app = Fastify();
  await app.register(healthRoutes({ ready, timeoutMs }));
  close = () => app.close();
  return app.listen({ port: 0, host: '127.0.0.1' });
}

describe('health', () => {
  it('is live and answers pong whatever the readiness is', async () => {
    const url = await serve(() => ({ ready: false, checks: { database: 'unreachable' } }));
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect(await (await fetch(`${url}/api/v1/ping`)).text()).toBe('pong');
  });

  it('is ready, then is not from one request to the next', async () => {
    let ready = true;
    const url = await serve(() => ({ ready, checks: { gateway: 'ok', database: ready ? 'ok' : 'cannot be reached' } }));
    const first = await fetch(`${url}/health/ready`);
    expect([first.status, await first.json()]).toEqual([
      200,
      { status: 'ok', checks: { gateway: 'ok', database: 'ok' } },
    ]);
    ready = false;
    const second = await fetch(`${url}/health/ready`);
    expect([second.status, await second.json()]).toEqual([
      503,
      {
        status: 'unavailable',
        message: 'The database cannot be reached',
        checks: { gateway: 'ok', database: 'cannot be reached' },
      },
    ]);
    expect(second.headers.get('cache-control')).toBe('no-store');
  });

  it('is not ready while the check does not answer, or fails', async () => {
    const silent = await serve(() => new Promise<never>(() => {}), 30);
    const late = await fetch(`${silent}/health/ready`);
    expect([late.status, await late.json()]).toMatchObject([
      503,
      { message: 'The gateway did not finish its checks within 30 ms' },
    ]);
    await close();
    const failing = await serve(() => Promise.reject(new Error('password of the database')));
    const response = await fetch(`${failing}/health/ready`);
    expect(response.status).toBe(503);
    expect(await response.json()).toEqual({
      status: 'unavailable',
      message: 'The gateway could not check itself',
      checks: { gateway: 'could not check itself' },
    });
  });
});
