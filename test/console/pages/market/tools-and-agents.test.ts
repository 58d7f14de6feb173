import { expect, test } from 'vitest';
import { offer, startMarket, tunnelled, variants } from './market-world.ts';

test('GET /tools lists each tool service once, with everyone who offers it, their prices and its other doors', async () => {
  const { catalog, connected, health, data } = await startMarket();
  const plain = offer({ provider: 'A', service: 'acme/search', primitive: 'tool', pricing: { call: 0.001 } });
  const rich = offer({ provider: 'B', service: 'acme/search', primitive: 'tool', pricing: { call: 0.002 } });
  const priced = tunnelled(rich, {
    variants: variants(rich, 'call', { deep_search: 0.05, ping: 0 }),
    description: 'Searches.',
    displayName: 'B: Search',
  });
  const door = tunnelled(offer({ provider: 'B', service: 'acme/search', primitive: 'agent', pricing: { call: 1 } }));
  catalog.replace('config', [
    plain,
    priced,
    door,
    offer({ provider: 'A', service: 'acme/abacus', primitive: 'tool', pricing: { call: 0 } }),
    // Another provider's model of the same name is another service.
    offer({ provider: 'C', service: 'acme/abacus' }),
  ]);
  health.unreachable(plain);
  const figures = {
    uptime_last_1h: null,
    latency: null,
    throughput: null,
    cache_hit_rate: null,
    effective_prompt_price: null,
    requests: 0,
    flags: {},
    compliance: 1,
    price_raised: null,
  };
  expect(await data('/tools')).toEqual([
    {
      id: 'acme/abacus',
      name: 'acme/abacus',
      display_name: 'acme/abacus',
      description: '',
      primitives: ['tool'],
      status: 'untried',
      providers: [
        {
          id: 'id-A',
          name: 'A',
          primitives: ['tool'],
          pricing: { per_call: 0, tools: {} },
          status: 'untried',
          ...figures,
        },
      ],
    },
    {
      id: 'acme/search',
      name: 'acme/search',
      display_name: 'acme/search',
      description: 'Searches.',
      primitives: ['agent', 'tool'],
      status: 'down',
      providers: [
        {
          id: 'id-A',
          name: 'A',
          primitives: ['tool'],
          pricing: { per_call: 0.001, tools: {} },
          status: 'cooling_down',
          ...figures,
          uptime_last_1h: 0,
          requests: 1,
        },
        {
          id: 'id-B',
          name: 'B',
          primitives: ['agent', 'tool'],
          pricing: { per_call: 0.002, tools: { deep_search: 0.05, ping: 0 } },
          status: 'away',
          ...figures,
        },
      ],
    },
  ]);
  connected.add('id-B');
  expect(await data('/tools')).toMatchObject([{}, { status: 'degraded', providers: [{}, { status: 'untried' }] }]);
});

test('GET /agents lists agents, and GET /agents/{id} shows one by its name, encoded or not, or by the name at one provider', async () => {
  const { catalog, get, data } = await startMarket();
  const first = offer({ provider: 'A', service: 'acme/agents/research', primitive: 'agent', pricing: { call: 0.25 } });
  const second = offer({
    provider: 'B',
    service: 'acme/agents/research',
    primitive: 'agent',
    pricing: { prompt: 1, completion: 2.5 },
  });
  catalog.replace('config', [
    first,
    second,
    offer({ provider: 'A', service: 'acme/agents/research', primitive: 'tool' }),
    offer({ provider: 'A', service: 'a-model' }),
  ]);
  const [entry, ...more] = await data<{ id: string }[]>('/agents');
  expect(more).toEqual([]);
  expect(entry).toMatchObject({
    id: 'acme/agents/research',
    name: 'acme/agents/research',
    primitives: ['agent', 'tool'],
    providers: [
      { id: 'id-A', primitives: ['agent', 'tool'], pricing: { per_call: 0.25, prompt: null, completion: null } },
      { id: 'id-B', primitives: ['agent'], pricing: { per_call: null, prompt: 1, completion: 2.5 } },
    ],
  });
  for (const name of ['acme/agents/research', 'acme%2Fagents%2Fresearch', 'acme/agents%2Fresearch'])
    expect(await data(`/agents/${name}`)).toEqual(entry);
  expect(await data('/agents/id-B:acme/agents/research')).toMatchObject({
    primitives: ['agent'],
    providers: [{ id: 'id-B' }],
  });
  for (const name of ['a-model', 'nowhere', 'acme', '__proto__', 'constructor', '%00', 'id-C:acme/agents/research']) {
    const response = await get(`/agents/${name}`);
    expect(response.status, name).toBe(404);
    expect(await response.json()).toMatchObject({ error: { type: 'not_found', code: 404 } });
  }
});
