import { describe, expect, test } from 'vitest';
import { DEFAULT_FACTS, readCard } from '../../../src/a2a/cards/read-card.ts';
import { LEGACY_CARD, RICH_CARD } from './support/card-world.ts';

const modern = (...interfaces: readonly object[]) => ({ name: 'n', supportedInterfaces: interfaces });
const at = (url: string, more: object = {}) => ({ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', ...more });

test('a card of 1.0', () => {
  expect(readCard(RICH_CARD, '/')).toEqual({
    versions: ['1.0'],
    jsonRpc: [{ version: '1.0', path: '/a2a/v1', tenant: 'maps' }],
    rest: [{ version: '1.0', path: '/a2a/rest', tenant: null }],
    streaming: true,
    push: false,
    extended: true,
    bare: false,
    signed: 'unverified',
  });
});

test('a card of 0.3', () => {
  expect(readCard(LEGACY_CARD, null)).toEqual({
    versions: ['0.3'],
    jsonRpc: [{ version: '0.3', path: '/a2a/v1', tenant: null }],
    rest: [{ version: '0.3', path: '/a2a/rest', tenant: null }],
    streaming: true,
    push: true,
    extended: true,
    bare: false,
    signed: 'none',
  });
});

test('a card for both', () => {
  const card = {
    ...LEGACY_CARD,
    supportedInterfaces: [at('https://a.example/new'), at('https://a.example/a2a/v1', { protocolVersion: '0.3' })],
  };
  expect(readCard(card, null)).toMatchObject({
    versions: ['1.0', '0.3'],
    jsonRpc: [
      { version: '1.0', path: '/new' },
      { version: '0.3', path: '/a2a/v1' },
    ],
  });
});

test.each<readonly [string, unknown]>([
  ['only what is not carried', modern(at('https://a.example', { protocolBinding: 'GRPC' }))],
  ['a version that nobody speaks', modern(at('https://a.example', { protocolVersion: '9.1' }))],
  ['an address that is none', modern(at('javascript:alert(1)'), at('/relative'), at(''))],
  ['nothing', null],
  ['a text', 'x'],
])('of a card with %s the default is taken: JSON-RPC of 0.3 at the endpoint itself', (_what, card) => {
  expect(readCard(card, null)).toEqual(DEFAULT_FACTS);
});

test('a card with a name that says nothing of where its agent is, is that of one that takes a bare message', () => {
  const card = { name: 'w', description: 'd', skills: [{ id: 's', name: 'S' }], protocolVersion: '0.3' };
  expect(readCard(card, null)).toEqual({ ...DEFAULT_FACTS, bare: true });
  expect(readCard({ ...card, url: 'https://a.example' }, null).bare).toBe(false);
  expect(readCard({ ...card, supportedInterfaces: [] }, null).bare).toBe(false);
});

test.each([
  ['1.0', '1.0'],
  ['1.0.1', '1.0'],
  ['0.3', '0.3'],
  ['0.3.0', '0.3'],
  ['0.2.6', '0.3'],
])('version %s is %s', (written, version) => {
  expect(readCard({ ...LEGACY_CARD, protocolVersion: written }, null).versions).toEqual([version]);
  expect(readCard(modern(at('https://a.example', { protocolVersion: written })), null).versions).toEqual([version]);
});

describe('paths are below the registered endpoint, whatever the host', () => {
  test.each<readonly [string, string | null, string]>([
    ['https://elsewhere.example/agents/w/rpc', '/agents/w', '/rpc'],
    ['https://elsewhere.example/agents/w/rpc', '/agents/w/', '/rpc'],
    ['https://elsewhere.example/agents/w', '/agents/w', ''],
    ['https://elsewhere.example/agents/w/', '/agents/w', ''],
    ['https://elsewhere.example/agents/writer', '/agents/w', ''],
    ['https://elsewhere.example/other', '/agents/w', ''],
    ['https://elsewhere.example', '/', ''],
    ['https://elsewhere.example/rpc?key=1#x', '/', '/rpc'],
    ['https://elsewhere.example/a2a', null, '/a2a'],
    ['http://169.254.169.254/latest', null, '/latest'],
    // Not for whoever resolves it against an address.
    ['https://a.example//evil.example/x', '/', ''],
    ['https://a.example/agents//evil.example', '/agents', ''],
    ['https://a.example/a/../../b', '/', '/b'],
    ['https://a.example/%2e%2e/b', '/', '/b'],
    ['https://a.example/a\r\nx: y', '/', '/ax:%20y'],
  ])('%s below %s is %o', (url, basePath, path) => {
    expect(readCard(modern(at(url)), basePath).jsonRpc).toEqual([{ version: '1.0', path, tenant: null }]);
  });
});

test('a path that is longer than any needs to be is left out', () => {
  expect(readCard(modern(at(`https://a.example/${'x'.repeat(5_000)}`)), '/').jsonRpc).toMatchObject([{ path: '' }]);
});

test('a list of very many interfaces is read in part', () => {
  const card = modern(...Array.from({ length: 10_000 }, (_, n) => at(`https://a.example/${n}`)));
  expect(readCard(card, null).jsonRpc.length).toBeLessThanOrEqual(32);
});
