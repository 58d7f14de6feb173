import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver } from '@a2a-js/sdk/client';
import { expect, test } from 'vitest';
import { agentOffer, RICH_CARD, startAgent, startGateway, verifierFor } from './support/card-world.ts';

const PATH = '/a2a/acme/writer/.well-known/agent-card.json';

async function world() {
  const agent = await startAgent(RICH_CARD);
  return startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
}

/** A client that does not name its version when it asks for the card. */
const unnamed: typeof fetch = (input, { headers: _headers, ...init } = {}) => fetch(input, init);

test("the SDK's client of 1.0 names its version and gets the card of that one alone", async () => {
  const gateway = await world();
  const card = await gateway.card(PATH, '1.0');
  expect(Object.keys(card).sort()).toEqual(
    [
      'name',
      'description',
      'version',
      'supportedInterfaces',
      'provider',
      'documentationUrl',
      'iconUrl',
      'capabilities',
      'securitySchemes',
      'securityRequirements',
      'defaultInputModes',
      'defaultOutputModes',
      'skills',
      'signatures',
    ].sort(),
  );
  const client = await new ClientFactory().createFromUrl(gateway.url, PATH);
  expect(client.protocolVersion).toBe('1.0');
});

test('a client of 1.0 that does not name its version finds its interfaces', async () => {
  const gateway = await world();
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl: unnamed });
  const client = await new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { cardResolver }),
  ).createFromUrl(gateway.url, PATH);
  expect(client.protocolVersion).toBe('1.0');
  // As the resolver hands it over, the signature is still good.
  await verifierFor(gateway.url)(await cardResolver.resolve(gateway.url, PATH));
});

test('a client of 0.3 finds all that it needs, whether or not it names its version', async () => {
  const gateway = await world();
  const unaware = await gateway.card(PATH);
  expect(await gateway.card(PATH, '0.3')).toEqual(unaware);
  const { supportedInterfaces: _later, ...legacy } = unaware;
  const here = `${gateway.url}/a2a/acme/writer`;
  expect(legacy).toMatchObject({
    protocolVersion: '0.3',
    url: here,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [
      { url: here, transport: 'JSONRPC' },
      { url: here, transport: 'HTTP+JSON' },
    ],
    supportsAuthenticatedExtendedCard: true,
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      openIdConnect: {
        type: 'openIdConnect',
        openIdConnectUrl: 'https://issuer.example/.well-known/openid-configuration',
      },
    },
    security: [{ bearer: ['call'] }, { apiKey: ['call'] }, { openIdConnect: ['agents'] }],
  });
  // The SDK's reader of 0.3 cards throws for what is missing.
  const read = new DefaultAgentCardResolver({ legacyCompat: { enabled: true } }).normalizeAgentCard(legacy) as {
    readonly supportedInterfaces: readonly object[];
    readonly skills: readonly object[];
  };
  expect(read.supportedInterfaces).toMatchObject(
    Array.from({ length: 3 }, () => ({ url: here, protocolVersion: '0.3' })),
  );
  expect(read.skills).toHaveLength(2);
});

test('who asks for a version that nobody speaks is shown which ones are', async () => {
  const gateway = await world();
  const { supportedInterfaces } = (await gateway.card(PATH, '7.0')) as {
    supportedInterfaces?: readonly { readonly protocolVersion: string }[];
  };
  expect(supportedInterfaces!.map(({ protocolVersion }) => protocolVersion)).toEqual(['1.0', '1.0', '0.3', '0.3']);
});
