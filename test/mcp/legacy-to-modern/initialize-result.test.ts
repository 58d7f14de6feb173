import { expect, test } from 'vitest';
import { UpstreamFailure } from '#wire';
import { initializeResult } from '../../../src/mcp/request/legacy-to-modern-text.ts';
import { startBridge } from './bridge-world.ts';
import { startRawServer } from './raw-server.ts';

const initialized = (text: string, requested: string | null = '2025-06-18') =>
  initializeResult({ era: 'modern', revision: '2026-07-28', bare: false, text, capabilities: {} }, requested);

test('a discovery becomes an InitializeResult, and what is unknown in it stays as it is written', () => {
  const discovered =
    '{"resultType":"complete", "supportedVersions":["2026-07-28"],"ttlMs":5,"instructions":"say \\u0061",' +
    '"capabilities":{"tools":{"listChanged":true,"x":1.0},"resources":{"subscribe":true},"completions":{},"extensions":{"a/b":{"n":12345678901234567890},"io.modelcontextprotocol/tasks":{}}, "future":[1e2]},' +
    '"cacheScope":"public","unknown":{"b":1,"a":2.50},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","z":0.0},"other":true}}';
  expect(initialized(discovered)).toBe(
    '{"instructions":"say \\u0061",' +
      '"capabilities":{"tools":{"listChanged":true,"x":1.0},"resources":{"subscribe":true},"completions":{},"extensions":{"a/b":{"n":12345678901234567890}}, "future":[1e2],"logging":{}},' +
      '"unknown":{"b":1,"a":2.50},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","z":0.0},"other":true},' +
      '"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1","z":0.0}}',
  );
});

test.each([
  ['2024-11-05', '2024-11-05'],
  ['2025-11-25', '2025-11-25'],
  ['2026-07-28', '2025-11-25'],
  ['1999-01-01', '2025-11-25'],
  [null, '2025-11-25'],
])('a client that asks for %s is given %s', (requested, given) => {
  expect(JSON.parse(initialized('{"capabilities":{}}', requested))).toMatchObject({ protocolVersion: given });
});

test('logging that the server offers stays as the server offers it', () => {
  expect(JSON.parse(initialized('{"capabilities":{"logging":{"own":1}}}'))).toMatchObject({
    capabilities: { logging: { own: 1 } },
  });
});

test('a server without a name is given one, since a legacy server has one', () => {
  for (const text of [
    '{"capabilities":{}}',
    '{"capabilities":{},"_meta":{"io.modelcontextprotocol/serverInfo":"s"}}',
    '{"capabilities":{},"_meta":null}',
  ])
    expect(JSON.parse(initialized(text))).toMatchObject({ serverInfo: { name: 'unknown', version: 'unknown' } });
});

test('capabilities that are none are read as none', () => {
  expect(JSON.parse(initialized('{"capabilities":["tools"]}'))).toMatchObject({ capabilities: { logging: {} } });
});

test('a discovery that two readers would take for different ones is the failure of the provider', () => {
  expect(() => initialized('{"capabilities":{},"instructions":"a","instructions":"b"}')).toThrow(UpstreamFailure);
});

test('a client is given what the server itself says', async () => {
  const server = await startRawServer(
    () => {},
    '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{"n":1.0}}}',
  );
  const world = await startBridge(server.url);
  expect(await world.initialize('2025-03-26')).toContain('"capabilities":{"prompts":{"n":1.0},"logging":{}}');
  expect(await world.faults()).toEqual([]);
});
