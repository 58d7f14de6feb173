import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/a2a/cards/sign-card.ts';
import { readContent } from '../../../src/a2a/cards/card-content.ts';
import { readCard } from '../../../src/a2a/cards/read-card.ts';
import { rewriteCard } from '../../../src/a2a/cards/write-card.ts';
import { agentOffer, startAgentHost, startGateway, verifierFor } from './support/card-world.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { anyWebPath } from '../../support/any-web-url.ts';

const PATH = '/a2a/acme/writer/.well-known/agent-card.json';

const text = (body: string) => (response: ServerResponse) => response.end(body);
const deep = (levels: number) => `{"name":"n","skills":${'['.repeat(levels)}${']'.repeat(levels)}}`;

test.each<readonly [string, (response: ServerResponse) => unknown, RegExp]>([
  [
    'of a megabyte',
    text(JSON.stringify({ name: 'n', description: 'x'.repeat(1024 * 1024) })),
    /larger than 262144 bytes/,
  ],
  ['nested deep', text(deep(100_000)), /not JSON that this gateway can read/],
  [
    'of very many members',
    text(JSON.stringify({ name: 'n', x: Array.from({ length: 20_000 }, () => ({})) })),
    /not JSON that this gateway can read/,
  ],
  ['that is no JSON', text('<html><script>alert(1)</script>'), /not JSON that this gateway can read/],
  [
    'that is no UTF-8',
    (response) => response.end(Buffer.from('7b226e616d65223a22ff227d', 'hex')),
    /not JSON that this gateway can read/,
  ],
  ['that is a list', text('[{"name":"n"}]'), /has no name/],
  ['without a name', text('{"description":"d"}'), /has no name/],
  [
    'behind redirects',
    (response) => response.writeHead(302, { location: '/.well-known/agent-card.json' }).end(),
    /answers 302/,
  ],
])('an agent with a card %s has the card that the catalogue makes', async (_what, answer, fault) => {
  const host = await startAgentHost((_request, response) => void answer(response));
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: host.url })] });
  const card = await gateway.card(PATH, '1.0');
  await verifierFor(gateway.url)(card);
  expect(card).toMatchObject({
    name: 'Writer',
    description: 'Writes what it is told to.',
    skills: [{ id: 'message', name: 'Writer' }],
  });
  expect(gateway.faults).toEqual([expect.stringMatching(fault)]);
  // Each address once, and where a redirect leads never.
  expect(host.asked).toEqual(['/.well-known/agent-card.json', '/.well-known/agent.json']);
});

test('a host that never answers is waited for no longer than allowed', async () => {
  const host = await startAgentHost(() => {});
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: host.url })], timeoutMs: 50 });
  expect(await gateway.card(PATH, '1.0')).toMatchObject({ name: 'Writer' });
  expect(gateway.faults).toEqual(["The agent's card took longer than 50 ms"]);
});

test('names that every object has do nothing', async () => {
  const params = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"kept":1}';
  const body = `{"__proto__":{"polluted":1},"name":"n","skills":[{"id":"__proto__","name":"constructor","__proto__":{"tags":["x"]}}],"capabilities":{"__proto__":{"streaming":true},"extensions":[{"uri":"urn:x","params":${params}}]}}`;
  const host = await startAgentHost((_request, response) => response.end(body));
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: host.url })] });
  const card = await gateway.card(PATH, '1.0');
  await verifierFor(gateway.url)(card);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  expect(card['skills']).toEqual([
    { id: '__proto__', name: 'constructor', description: 'constructor', tags: ['agent'] },
  ]);
  expect(card['capabilities']).toMatchObject({
    streaming: false,
    extensions: expect.arrayContaining([{ uri: 'urn:x', params: { kept: 1 } }]) as unknown,
  });
});

test('markup and characters that do not print reach nobody but as text', async () => {
  const name = 'a\u202eb<script>alert(1)</script>\u0000\ud800';
  const host = await startAgentHost((_request, response) =>
    response.end(JSON.stringify({ name, description: 'one\ntwo\u200b' })),
  );
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: host.url })] });
  const reply = await gateway.get(PATH, '1.0');
  expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
  const card = (await reply.json()) as object;
  await verifierFor(gateway.url)(card);
  expect(card).toMatchObject({ name: 'ab<script>alert(1)</script>\ufffd', description: 'one\ntwo' });
});

test('a text that is cut is not cut in the middle of a character', () => {
  const { name } = readContent({ name: `${'x'.repeat(199)}🗾` });
  expect(name).toBe('x'.repeat(199));
});

test('whatever an agent shows, reading it does not throw, and the card made of it can be signed so that all canonicalisers agree', () => {
  const keys = [
    'name',
    'description',
    'version',
    'url',
    'skills',
    'capabilities',
    'supportedInterfaces',
    'provider',
    'defaultInputModes',
    'extensions',
    'id',
    'tags',
  ];
  const { value } = fc.letrec<{ readonly value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(
        null,
        true,
        0,
        -0,
        1e300,
        '',
        'text',
        '1.0',
        'JSONRPC',
        'https://a.example/x',
        'text/plain',
        '\ud800',
      ),
      fc.string({ unit: anyCharacter }),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom(...keys, 'uri', 'params', 'streaming', '__proto__'), tie('value'), { maxKeys: 6 }),
    ),
  }));
  fc.assert(
    fc.property(value, fc.option(anyWebPath), (card, basePath) => {
      const facts = readCard(card, basePath);
      expect(facts.jsonRpc.length + facts.rest.length).toBeGreaterThan(0);
      const made = rewriteCard(readContent(card), {
        url: 'https://gate.example/a2a/w',
        name: 'W',
        description: '',
        streaming: facts.streaming,
        price: { currency: 'USD', per_call_usd: '0' },
        auth: { openIdConnectUrl: null, scopes: [] },
        x402: false,
      });
      expect(canonicalizeAgentCard(made as unknown as AgentCard)).toBe(canonicalJson(made));
    }),
    { numRuns: 500 },
  );
});

test('a card is the same, byte by byte, as long as nothing changes', async () => {
  const gateway = await startGateway({ offers: [agentOffer()] });
  const hash = async () =>
    createHash('sha256')
      .update(await (await gateway.get(PATH)).text())
      .digest('hex');
  expect(await hash()).toBe(await hash());
});
