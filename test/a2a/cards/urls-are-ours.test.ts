import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readContent } from '../../../src/a2a/cards/card-content.ts';
import { rewriteCard } from '../../../src/a2a/cards/write-card.ts';
import { X402_EXTENSION } from '../../../src/a2a/wire/protocol.ts';
import { withLegacyMembers } from '../../../src/a2a/cards/card-pages.ts';
import { agentOffer, LEGACY_CARD, RICH_CARD, startAgent, startGateway } from './support/card-world.ts';

/** Where an address may be somebody else's: for people to open, of the issuer, or a name that nobody calls. */
const FOREIGN = [
  /^(?:documentationUrl|iconUrl|provider\.url)$/,
  /openIdConnectUrl$/,
  /^capabilities\.extensions\.\d+\.uri$/,
];
/** For people and models to read, not to call. */
const PROSE = /(?:^|\.)(?:name|organization|description|id|examples\.\d+|tags\.\d+|version)$/;
const isAddress = (text: string) => {
  const url = URL.parse(text) ?? URL.parse(text, 'https://here.example');
  return url !== null && !['', 'here.example'].includes(url.host)
    ? true
    : /^(?:javascript|data|file):/i.test(url?.protocol ?? '');
};

function* texts(value: unknown, path = ''): Generator<readonly [string, string]> {
  if (typeof value === 'string') yield [path, value];
  else if (typeof value === 'object' && value !== null)
    for (const [key, child] of Object.entries(value)) {
      yield [`${path}.(key)`, key];
      yield* texts(child, path === '' ? key : `${path}.${key}`);
    }
}

function foreignAddresses(card: object, ours: string): readonly string[] {
  const found: string[] = [];
  for (const [path, text] of texts(card)) {
    if (!isAddress(text) || PROSE.test(path) || text === ours || text.startsWith(`${ours}/`)) continue;
    if (FOREIGN.some((allowed) => allowed.test(path)) && (/^https?:\/\//.test(text) || path.endsWith('.uri'))) continue;
    found.push(`${path}: ${text}`);
  }
  return found;
}

test.each([
  ['1.0', RICH_CARD],
  ['0.3', LEGACY_CARD],
])('in cards made of one of %s every address to call is ours', async (_version, card) => {
  const agent = await startAgent(card);
  const gateway = await startGateway({ offers: [agentOffer({ baseUrl: agent.url })] });
  for (const path of ['/.well-known/agent-card.json', '/a2a/acme/writer/.well-known/agent-card.json'])
    for (const version of [undefined, '1.0']) {
      const shown = await gateway.card(path, version);
      expect(foreignAddresses(shown, gateway.url)).toEqual([]);
      expect([...texts(shown)].filter(([, text]) => text.startsWith(gateway.url)).length).toBeGreaterThan(3);
      // Their payment extension would have them paid past the gateway; ours is no condition.
      const { extensions } = shown['capabilities'] as {
        readonly extensions: readonly { readonly uri: string; readonly required?: boolean }[];
      };
      expect(extensions.filter(({ uri }) => uri.includes('x402'))).toEqual([
        expect.objectContaining({ uri: X402_EXTENSION }),
      ]);
      expect(extensions.find(({ uri }) => uri === X402_EXTENSION)).not.toHaveProperty('required');
    }
});

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  '//evil.example',
  'ftp://a.example',
  'https://user:pw@a.example',
  'not one',
])('an address for people that is %s is left out', (url) => {
  const content = readContent({ name: 'n', documentationUrl: url, iconUrl: url, provider: { organization: 'o', url } });
  expect(content).not.toHaveProperty('documentationUrl');
  expect(content).not.toHaveProperty('iconUrl');
  expect(content).not.toHaveProperty('provider');
});

test('whatever addresses an agent puts wherever it likes, none that can be called comes through', () => {
  const address = fc.constantFrom(
    'https://evil.example/a2a',
    'javascript:alert(1)',
    '//evil.example',
    'HTTP://evil.example',
    ' https://evil.example',
    'grpc://evil.example:443',
    'https:evil.example',
    '\\\\evil.example/a2a',
    'ht\ntps://evil.example',
    'data:text/html,<script>',
  );
  const value = fc.letrec<{ readonly one: unknown }>((tie) => ({
    one: fc.oneof(
      { maxDepth: 4 },
      address,
      fc.string(),
      fc.array(tie('one'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(fc.string(), address), tie('one'), { maxKeys: 4 }),
    ),
  })).one;
  const skill = fc.record(
    {
      id: fc.string(),
      name: fc.string(),
      tags: value,
      inputModes: fc.array(address),
      outputModes: value,
      security: value,
    },
    { requiredKeys: [] },
  );
  const extension = fc.record({ uri: address, params: value, description: fc.string() }, { requiredKeys: [] });
  const card = fc.record(
    {
      name: fc.string(),
      url: address,
      preferredTransport: value,
      supportedInterfaces: value,
      additionalInterfaces: value,
      provider: fc.record({ organization: fc.string(), url: address }),
      documentationUrl: address,
      iconUrl: value,
      capabilities: fc.record({ extensions: fc.array(extension) }),
      securitySchemes: value,
      signatures: value,
      defaultInputModes: fc.array(address),
      skills: fc.array(skill),
    },
    { requiredKeys: [] },
  );
  const ours = 'https://gate.example';
  fc.assert(
    fc.property(card, (upstream) => {
      const made = rewriteCard(readContent(upstream), {
        url: `${ours}/a2a/w`,
        name: 'W',
        description: '',
        streaming: false,
        price: null,
        auth: { openIdConnectUrl: null, scopes: [] },
        x402: true,
      });
      expect(foreignAddresses(withLegacyMembers(made), ours)).toEqual([]);
    }),
  );
});
