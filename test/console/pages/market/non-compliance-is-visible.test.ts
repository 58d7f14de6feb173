import { expect, test } from 'vitest';
import { ask, modelBlock } from '../../../support/spine.ts';
import { model } from '../../../gateway/network/registry/registry-world.ts';
import { startSupplied } from './supplied-spine.ts';

interface Day {
  readonly requests: number;
  readonly services: unknown[];
}
interface Earned {
  readonly available_micro_usdc: number;
  readonly total_earned_micro_usdc: number;
  readonly by_day: readonly Day[];
}
interface Served {
  readonly services: readonly object[];
}

test('a provider that leaves usage out earns nothing for it, is flagged and counted wherever it is shown, and gets fewer calls', async () => {
  const { spine, supply } = await startSupplied(
    `[billing]\nfee_bps = 500\n[tunnel]\nshared_names = ["shared/model"]\n${modelBlock({ name: 'shared/model', provider: 'Honest', url: '{provider}', prompt: 1, completion: 1 })}`,
  );
  const supplier = await supply(model('shared/model', { providerName: 'Careless' }));
  const call = async (more: object) => {
    const response = await spine.post('/chat/completions', ask('hello !tokens:3', { model: 'shared/model', ...more }));
    await response.text();
    return response;
  };
  const calls = async (count: number, more: (index: number) => object) => {
    const responses: Response[] = [];
    while (responses.length < count)
      responses.push(...(await Promise.all(Array.from({ length: 20 }, (_, index) => call(more(index))))));
    return responses;
  };
  /** How many of 100 routed calls come to the supplier. */
  const share = async () =>
    (await calls(100, () => ({}))).filter((response) => response.headers.get('x-provider') === 'Careless').length;
  // Both cost the same, so that each gets about half.
  const before = await share();
  expect(before).toBeGreaterThan(25);
  const paid = (await supplier.page<Earned>('/earnings')).total_earned_micro_usdc;
  expect(paid).toBeGreaterThan(0);

  const careless = { model: `${supplier.id}:shared/model` };
  const said = (text: string) => ({ ...careless, messages: [{ role: 'user', content: text }] });
  const balance = (await spine.balance()).available;
  await calls(200, (index) => ({ ...said('hello !usage:none'), stream: index % 2 === 0 }));
  const missing = await call(said('hello !usage:none'));
  expect(await spine.generation(missing.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    provider: supplier.id,
    cost_micro_usdc: 0,
    flags: ['usage_missing'],
  });
  expect((await spine.balance()).available).toBe(balance);

  const flags = { usage_missing: 201 };
  const requests = before + 201;
  const compliance = 1 - 201 / (requests + 5);
  const endpoints = (await (await spine.get('/models/shared/model/endpoints')).json()) as {
    data: { endpoints: { provider_name: string }[] };
  };
  expect(endpoints.data.endpoints.find((one) => one.provider_name === 'Careless')).toMatchObject({
    provider_id: supplier.id,
    status: 0,
    health: 'healthy',
    requests,
    flags,
    compliance,
  });
  expect(endpoints.data.endpoints.find((one) => one.provider_name === 'Honest')).toMatchObject({
    flags: {},
    compliance: 1,
  });
  const { data } = (await (await spine.get('/providers')).json()) as { data: { name: string }[] };
  expect(data.find(({ name }) => name === 'Careless')).toMatchObject({
    id: supplier.id,
    status: 'healthy',
    requests,
    flags,
  });

  // On its own pages: counted, and not paid.
  const earnings = await supplier.page<Earned>('/earnings');
  expect(earnings).toMatchObject({ available_micro_usdc: paid, total_earned_micro_usdc: paid });
  expect(earnings.by_day.reduce((sum, day) => sum + day.requests, 0)).toBe(requests);
  expect(earnings.by_day.at(-1)!.services).toEqual([
    { service: 'shared/model', primitive: 'model', requests, earned_micro_usdc: paid, flags },
  ]);
  const { services } = await supplier.page<Served>('/services');
  expect(services).toMatchObject([
    { name: 'shared/model', status: 'healthy', compliance, last_hour: { requests, failures: 0, flags: 201 }, flags },
  ]);

  // Good replies count again: its weight is low, not lost.
  expect(await share()).toBeLessThan(before / 2);
  expect(await spine.faults()).toEqual([]);
});
