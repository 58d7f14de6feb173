import { verifyAgentCardSignature, type AgentCard } from '@a2a-js/sdk';
import { decodeProtectedHeader, flattenedVerify, importJWK, type JWK } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startAgentSpine, type AgentSpine, type ServedAgent } from '../../support/a2a-agent/index.ts';
import { canonicalJson } from '../../../src/a2a/cards/sign-card.ts';
import { createTalk } from '../contract/client-calls.ts';

/** A client that finds an agent finds how to sign in there, and that the card is the gateway's. */

let world: AgentSpine;
let served: ServedAgent;
beforeAll(async () => {
  world = await startAgentSpine('[oauth]\nissuer = "https://idp.example"\nscopes = ["agents"]\n');
  served = await world.serve({ version: 'both' });
});
afterAll(async () => {
  expect(await world.spine.faults()).toEqual([]);
  await world.close();
});

const json = async (url: string, headers: Readonly<Record<string, string>> = {}) =>
  (await (await fetch(url, { headers })).json()) as Readonly<Record<string, unknown>>;

test('where the operator names an issuer, cards name its discovery', async () => {
  const openIdConnectUrl = 'https://idp.example/.well-known/openid-configuration';
  for (const address of [served.url, world.spine.origin]) {
    const card = `${address}/.well-known/agent-card.json`;
    expect(await json(card, { 'a2a-version': '1.0' })).toMatchObject({
      securitySchemes: { openIdConnect: { openIdConnectSecurityScheme: { openIdConnectUrl } } },
      securityRequirements: [{}, {}, { schemes: { openIdConnect: { list: ['agents'] } } }],
    });
    expect(await json(card)).toMatchObject({
      securitySchemes: { openIdConnect: { type: 'openIdConnect', openIdConnectUrl } },
    });
  }
});

test.each(['', '/message:send'])('a 401 says where the metadata of the resource is: %s', async (below) => {
  for (const headers of [{}, { authorization: 'Bearer svc-sk-wrong' }]) {
    const reply = await fetch(served.url + below, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
      body: '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}',
    });
    expect(reply.status).toBe(401);
    const found = /resource_metadata="([^"]+)"/.exec(reply.headers.get('www-authenticate') ?? '')?.[1];
    expect(await json(found!)).toMatchObject({
      resource: served.url + below,
      authorization_servers: ['https://idp.example'],
    });
  }
});

const extendedCard = async (version: '0.3' | '1.0') => {
  const talk = createTalk(
    { url: served.url, headers: { authorization: `Bearer ${world.spine.key}` } },
    version,
    'JSONRPC',
  );
  const card = (await talk.call('GetExtendedAgentCard', {})).result();
  expect(JSON.stringify(card['skills'])).toContain('extended');
  return card;
};
const keysAt = async (jku: string | undefined) => {
  expect(jku).toBe(`${world.spine.origin}/.well-known/jwks.json`);
  return (await json(jku!)) as unknown as { readonly keys: readonly (JWK & { readonly kid: string })[] };
};

test('the extended card is signed by the gateway, as the SDK verifies it', async () => {
  const card = await extendedCard('1.0');
  const verify = verifyAgentCardSignature(
    async (kid, jku) => (await keysAt(jku)).keys.find((key) => key.kid === kid) as never,
  );
  await verify(structuredClone(card) as unknown as AgentCard);
  await expect(verify({ ...structuredClone(card), name: 'Another' } as unknown as AgentCard)).rejects.toThrow();
});

test('and in the form of 0.3 as it stands there', async () => {
  const { signatures, ...card } = await extendedCard('0.3');
  const [signature] = signatures as [{ readonly protected: string; readonly signature: string }];
  const { kid, jku } = decodeProtectedHeader(signature) as { readonly kid: string; readonly jku: string };
  const key = await importJWK(
    (await keysAt(jku)).keys.find((one) => one.kid === kid)!,
    'ES256',
  );
  const signed = (content: object) => ({
    ...signature,
    payload: Buffer.from(canonicalJson(content)).toString('base64url'),
  });
  await flattenedVerify(signed(card), key);
  await expect(flattenedVerify(signed({ ...card, name: 'Another' }), key)).rejects.toThrow();
});
