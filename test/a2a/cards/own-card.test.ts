import { expect, test } from 'vitest';
import { ownCard } from '../../../src/a2a/cards/write-card.ts';
import { agentOffer, startGateway } from './support/card-world.ts';

const ROOT = '/.well-known/agent-card.json';
const TERMS = {
  url: 'https://gate.example/a2a',
  version: '1',
  auth: { openIdConnectUrl: null, scopes: [] },
  x402: false,
};

test('has a skill for each agent service, and follows the catalogue', async () => {
  const gateway = await startGateway({
    offers: [
      agentOffer({ service: 'b/two', more: { description: '' } }),
      agentOffer(),
      agentOffer({ provider: 'other' }),
    ],
  });
  const card = await gateway.card(ROOT, '1.0');
  expect(card).toMatchObject({
    name: 'tollgate',
    version: '1.2.3',
    supportedInterfaces: Array.from({ length: 4 }, () => ({ url: `${gateway.url}/a2a` })),
    skills: [
      { id: 'acme/writer', name: 'Writer', description: 'Writes what it is told to.', tags: ['agent'] },
      { id: 'b/two', name: 'Writer', description: 'Writer', tags: ['agent'] },
    ],
  });
  gateway.catalog.replace('test', [agentOffer({ service: 'c' })]);
  expect(await gateway.card(ROOT, '1.0')).toMatchObject({ skills: [{ id: 'c' }] });
});

test('without agents it has a skill all the same, as an empty list would not verify everywhere', () => {
  expect(ownCard([], TERMS).skills).toHaveLength(1);
});

test('a large catalogue is listed in part', () => {
  const offers = Array.from({ length: 1_000 }, (_, n) => agentOffer({ service: `agent-${n}` }));
  expect(ownCard(offers, TERMS).skills).toHaveLength(200);
});
