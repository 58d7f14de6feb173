import { expect, test } from 'vitest';
import { agentOffer, LEGACY_CARD, RICH_CARD, startAgent, startGateway } from './support/card-world.ts';

const PATH = '/a2a/acme/writer/.well-known/agent-card.json';

test('keeps what the agent says of itself and puts our doors, sign-in and price in place of its own', async () => {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  const { signatures: _signatures, ...card } = await gateway.card(PATH, '1.0');
  const url = `${gateway.url}/a2a/acme/writer`;
  expect(card).toEqual({
    name: RICH_CARD.name,
    description: RICH_CARD.description,
    version: '2.1.0',
    provider: { organization: 'Example Maps', url: 'https://maps.example/' },
    documentationUrl: RICH_CARD.documentationUrl,
    iconUrl: RICH_CARD.iconUrl,
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extendedAgentCard: true,
      extensions: [
        {
          uri: 'https://ext.example/units/v1',
          description: 'Units',
          required: true,
          params: { unit: 'km', digits: 2 },
        },
        {
          uri: 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2',
          description: expect.any(String) as unknown,
        },
        {
          uri: 'urn:tollgate:pricing',
          description: expect.any(String) as unknown,
          params: { currency: 'USD', per_call_usd: '0.02' },
        },
      ],
    },
    securitySchemes: {
      bearer: { httpAuthSecurityScheme: { description: expect.any(String) as unknown, scheme: 'bearer' } },
      apiKey: {
        apiKeySecurityScheme: { description: expect.any(String) as unknown, location: 'header', name: 'x-api-key' },
      },
      openIdConnect: {
        openIdConnectSecurityScheme: {
          description: expect.any(String) as unknown,
          openIdConnectUrl: 'https://issuer.example/.well-known/openid-configuration',
        },
      },
    },
    securityRequirements: [
      { schemes: { bearer: { list: ['call'] } } },
      { schemes: { apiKey: { list: ['call'] } } },
      { schemes: { openIdConnect: { list: ['agents'] } } },
    ],
    defaultInputModes: RICH_CARD.defaultInputModes,
    defaultOutputModes: RICH_CARD.defaultOutputModes,
    skills: [
      {
        id: 'route',
        name: 'Route',
        description: 'From A to B',
        tags: ['maps', 'routing'],
        examples: RICH_CARD.skills[0]!.examples,
        inputModes: ['text/plain'],
        outputModes: ['image/png'],
      },
      { id: 'map', name: 'Map', description: 'Draws maps', tags: ['agent'] },
    ],
  });
});

test('a card of 0.3 comes through as one of 1.0', async () => {
  const agent = await startAgent(LEGACY_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({
    name: 'Route planner',
    capabilities: { streaming: true, extendedAgentCard: true },
    skills: [{ id: 'route', tags: ['maps'] }],
  });
});

test('what a short card does not say comes from the catalogue', async () => {
  const agent = await startAgent({ name: 'w', skills: [{ id: 's', name: 'S' }], protocolVersion: '0.3' });
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({
    name: 'w',
    description: 'Writes what it is told to.',
    version: '1.0.0',
    capabilities: { streaming: false, pushNotifications: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'S', tags: ['agent'] }],
  });
});

test('of two skills with one id the first counts, and one without id or name is none', async () => {
  const agent = await startAgent({
    name: 'w',
    skills: [{ id: 's', name: 'First' }, { id: 's', name: 'Second' }, { description: 'x' }, null, { name: 'Only' }],
  });
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  const { skills } = (await gateway.card(PATH, '1.0')) as { readonly skills?: readonly object[] };
  expect(skills).toMatchObject([
    { id: 's', name: 'First' },
    { id: 'Only', name: 'Only' },
  ]);
});

test('a service of which nobody says anything still has nothing empty in its card', async () => {
  const gateway = await startGateway({ offers: [agentOffer({ more: { displayName: 'W', description: '' } })] });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({
    name: 'W',
    description: 'W, an agent that is called through tollgate',
    skills: [{ id: 'message', name: 'W', tags: ['agent'] }],
  });
});

test('of several providers the first that has a card speaks for all, and streams where all do', async () => {
  const [rich, still] = [await startAgent(RICH_CARD), await startAgent({ name: 'still' })];
  const gateway = await startGateway({
    offers: [
      agentOffer(),
      agentOffer({ provider: 'b', baseUrl: rich.url }),
      agentOffer({ provider: 'c', baseUrl: still.url }),
    ],
  });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({ name: 'Route planner', capabilities: { streaming: false } });
  gateway.catalog.replace('test', [agentOffer({ provider: 'b', baseUrl: rich.url })]);
  expect(await gateway.card(PATH, '1.0')).toMatchObject({ name: 'Route planner', capabilities: { streaming: true } });
});

test('facts are those of the agent of an offer, and the default where it shows none', async () => {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway();
  expect(await gateway.cards.facts(agentOffer({ baseUrl: agent.url }))).toMatchObject({
    versions: ['1.0'],
    signed: 'unverified',
  });
  expect(await gateway.cards.facts(agentOffer())).toMatchObject({
    versions: ['0.3'],
    jsonRpc: [{ version: '0.3', path: '', tenant: null }],
  });
});

test('what is no agent, such as a model, is not asked for a card', async () => {
  const model = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: model.url, more: { agent: null } })] });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({ name: 'Writer' });
  expect(model.asked).toEqual([]);
});
