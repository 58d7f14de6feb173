import { expect, test } from 'vitest';
import { askTunnel, startTunnelSpine } from '../support/tunnel-spine.ts';

// A provider whose service refuses its calls learns why, at its own page and in the log of its proxy.

interface OwnServices {
  readonly services: readonly {
    readonly status: string;
    readonly last_hour: object;
    readonly last_failures: readonly { readonly request_id: string; readonly at: string }[];
  }[];
}

test('its page has the last failures with the ids that its service got, and says that it is failing', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const { proxy, upstream } = await world.supply('Expired');
  const page = () => world.ownPage<OwnServices>('/services', proxy.wallet);
  await (await spine.post('/chat/completions', askTunnel('hello !tokens:3'))).text();
  expect((await page()).services).toMatchObject([{ status: 'healthy', last_failures: [] }]);

  for (let call = 0; call < 9; call++) {
    // Each account by itself, so that the provider rests for none of the others.
    const { key } = await spine.tenant(`caller-${call}`, '1');
    const reply = await spine.post('/chat/completions', askTunnel('hello !status:401'), {
      authorization: `Bearer ${key}`,
      'x-request-id': `mine-${call}`,
    });
    expect(reply.status).toBe(500);
    // The consumer does not read what the service says about its key.
    expect(await reply.text()).not.toContain('upstream said');
  }
  const [service] = (await page()).services;
  expect(service).toMatchObject({ last_hour: { requests: 10, failures: 9 } });
  expect(['failing', 'cooling_down']).toContain(service!.status);
  expect(service!.last_failures).toHaveLength(5);
  const got = upstream.log.map(({ headers }) => headers['x-request-id']);
  expect(service!.last_failures.map(({ request_id: id }) => id)).toEqual(got.slice(-5).toReversed());
  for (const failure of service!.last_failures)
    expect(failure).toMatchObject({ status: 401, reason: 'it answered with status 401', said: expect.any(String) });
  expect(await spine.faults()).toEqual([]);
});
