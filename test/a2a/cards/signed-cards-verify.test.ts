import { createPublicKey, verify, type webcrypto } from 'node:crypto';
import { type AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/a2a/cards/sign-card.ts';
import {
  agentOffer,
  EDDSA,
  ES256,
  LEGACY_CARD,
  RICH_CARD,
  startAgent,
  startGateway,
  verifierFor,
} from './support/card-world.ts';

const PATHS = [
  '/.well-known/agent-card.json',
  '/.well-known/agent.json',
  '/a2a/acme/writer/.well-known/agent-card.json',
];

describe.each([
  ['ES256', ES256],
  ['EdDSA', EDDSA],
])('signed with %s', (_name, sign) => {
  test.each([
    ['of 1.0', RICH_CARD],
    ['of 0.3', LEGACY_CARD],
    ['that is short', { name: 'w', description: 'd', skills: [{ id: 's', name: 'S' }], protocolVersion: '0.3' }],
    ['that is none', 'nothing'],
  ])("the SDK's verifier takes every card, with a key from our jwks, made of an agent's card %s", async (_of, card) => {
    const agent = await startAgent(card);
    const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })], sign });
    const verify = verifierFor(gateway.url);
    for (const path of PATHS)
      for (const version of [undefined, '1.0', '0.3']) await verify(await gateway.card(path, version));
    expect(agent.asked.length).toBeGreaterThan(0);
    expect(gateway.failures).toEqual([]);
  });
});

test('a card of 1.0 is what canonicalisers of every kind make of it: nothing in it is empty or beyond the schema', async () => {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  for (const path of PATHS) {
    const { signatures, ...content } = await gateway.card(path, '1.0');
    expect(signatures).toHaveLength(1);
    expect(canonicalizeAgentCard(content as unknown as AgentCard)).toBe(canonicalJson(content));
  }
});

test('the card for both versions is signed as a whole, too, for verifiers that look at all that is there', async () => {
  const agent = await startAgent(RICH_CARD);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })], sign: EDDSA });
  const { signatures, ...content } = await gateway.card(PATHS[2]!);
  const { keys } = (await (await gateway.get('/.well-known/jwks.json')).json()) as { keys: [webcrypto.JsonWebKey] };
  const signed = (of: (typeof signatures)[number] | undefined, text: string) =>
    verify(
      null,
      Buffer.from(`${of!.protected}.${Buffer.from(text).toString('base64url')}`),
      createPublicKey({ format: 'jwk', key: keys[0] }),
      Buffer.from(of!.signature, 'base64url'),
    );
  expect(signatures).toHaveLength(2);
  expect(signed(signatures[0], canonicalizeAgentCard(content as unknown as AgentCard))).toBe(true);
  expect(signed(signatures[1], canonicalJson(content))).toBe(true);
});

test('the protected header names algorithm, kind, key and where the key is (A2A 1.0 section 8.4.2)', async () => {
  const gateway = await startGateway();
  const { signatures } = await gateway.card(PATHS[0]!, '1.0');
  const header = JSON.parse(Buffer.from(signatures[0]!.protected, 'base64url').toString()) as object;
  expect(header).toEqual({ alg: 'ES256', typ: 'JOSE', kid: ES256.kid, jku: `${gateway.url}/.well-known/jwks.json` });
});
