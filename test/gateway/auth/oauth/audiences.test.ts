import { describe, expect, it } from 'vitest';
import { createOwnOrigin } from '#security';
import { createResources } from '../../../../src/gateway/auth/oauth/resources.ts';
import { PUBLIC_URL } from './token-world.ts';

const resources = createResources({
  publicUrl: PUBLIC_URL,
  ownOrigin: createOwnOrigin({ publicUrl: PUBLIC_URL }),
  domains: ['gate.internal:8402', 'localhost:8402', '[::1]:8402'],
  audience: 'api://tollgate',
  shared: false,
});

describe('a token is for this gateway', () => {
  it.each([
    'api://tollgate',
    PUBLIC_URL,
    `${PUBLIC_URL}/`,
    `${PUBLIC_URL}/mcp`,
    `${PUBLIC_URL}/mcp/`,
    `${PUBLIC_URL}/mcp/weather`,
    `${PUBLIC_URL}/mcp/acme/weather:v1`,
    `${PUBLIC_URL}/api/v1/mcp`,
    `${PUBLIC_URL}/api/v1/mcp/weather`,
    'https://GATE.example:443/mcp',
    'https://gate.internal:8402/mcp',
    'http://localhost:8402/mcp/weather',
    'http://[::1]:8402',
  ])('with the audience %s', (audience) => {
    expect(resources.isAudience(audience)).toBe(true);
  });

  it.each([
    '',
    'mcp',
    '/mcp',
    'api://tollgate/',
    'API://TOLLGATE',
    'http://gate.example/mcp',
    'https://gate.example.evil.example/mcp',
    'https://gate.example:8443/mcp',
    'https://gate.example@evil.example/mcp',
    'https://user@gate.example/mcp',
    'https://evil.example/https://gate.example/mcp',
    `${PUBLIC_URL}/other`,
    `${PUBLIC_URL}/mcpx`,
    `${PUBLIC_URL}/mcp/../other`,
    `${PUBLIC_URL}/mcp?services=a`,
    `${PUBLIC_URL}/mcp#a`,
    `${PUBLIC_URL}/api/v1/chat/completions`,
    'https://gate.internal/mcp',
    'https://localhost:8402/mcp',
    'https://gate.example./mcp',
  ])('not with %j', (audience) => {
    expect(resources.isAudience(audience)).toBe(false);
  });

  it('never, where the gateway knows no name of itself, whatever the request says', () => {
    const nameless = createResources({
      publicUrl: null,
      ownOrigin: createOwnOrigin({ publicUrl: null }),
      domains: [],
      audience: null,
      shared: false,
    });
    expect(nameless.isConfigured).toBe(false);
    for (const audience of ['', 'null', 'https://gate.example/mcp']) expect(nameless.isAudience(audience)).toBe(false);
  });
});

describe('a token is for the resource that it names:', () => {
  it.each([
    ['', '/mcp', true],
    ['/', '/a2a/acme/planner/tasks/1', true],
    ['', null, true],
    ['/mcp', '/mcp', true],
    ['/mcp', '/api/v1/mcp', true],
    ['/mcp/', '/mcp', true],
    ['/mcp', '/mcp/acme/weather', true],
    ['/mcp', '/mcpx', false],
    ['/mcp', '/a2a', false],
    ['/mcp', '/api/v1/chat/completions', false],
    ['/mcp', null, false],
    // The link to a video in an answer.
    ['/mcp', '/api/v1/videos/v-1/content', true],
    ['/api/v1/mcp/', '/api/v1/videos/v-1/content', true],
    ['/a2a', '/api/v1/videos/v-1/content', true],
    ['/mcp', '/api/v1/videos/v-1', false],
    ['/mcp', '/api/v1/videos', false],
    ['/mcp', '/api/v1/videos/v-1/other/content', false],
    ['/mcp/acme/weather', '/api/v1/videos/v-1/content', false],
    ['/mcp/acme/weather', '/mcp/acme/weather', true],
    ['/api/v1/mcp/acme/weather', '/mcp/acme/weather', true],
    ['/mcp/acme/weather', '/mcp/acme', false],
    ['/mcp/acme', '/mcp/acme/weather', false],
    ['/mcp/acme/weather', '/mcp/acme/weather2', false],
    ['/mcp/acme/weather', '/mcp/other/weather', false],
    ['/mcp/acme/weather', '/mcp', false],
    ['/a2a/acme/planner', '/a2a/acme/planner', true],
    ['/a2a/acme/planner', '/a2a/acme/planner/message:send', true],
    ['/a2a/acme/planner', '/api/v1/a2a/acme/planner/v1/tasks/t-1:cancel', true],
    ['/a2a/acme/planner/message:send', '/a2a/acme/planner/tasks/t-1', true],
    ['/a2a/acme/planner', '/a2a/acme/other/message:send', false],
    ['/a2a', '/a2a/acme/planner', true],
    // An agent of that name.
    ['/a2a/card', '/a2a/acme/planner', false],
    ['/a2a/acme/planner', '/mcp/a2a/acme/planner', false],
  ])('%j at %j: %j', (meant, path, accepted) => {
    expect(resources.isFor(PUBLIC_URL + meant, path)).toBe(accepted);
    expect(resources.isFor('api://tollgate', path)).toBe(true);
    expect(resources.isFor(`https://evil.example${meant}`, path)).toBe(false);
    const shared = createResources({
      publicUrl: PUBLIC_URL,
      ownOrigin: createOwnOrigin({ publicUrl: PUBLIC_URL }),
      domains: [],
      audience: null,
      shared: true,
    });
    expect(shared.isFor(PUBLIC_URL + meant, path)).toBe(true);
    expect(shared.isFor(`https://evil.example${meant}`, path)).toBe(false);
  });
});

it('a path of thousands of slashes is read in no time', () => {
  const before = process.cpuUsage();
  // As many as an address may have, ten times.
  for (let time = 0; time < 10; time += 1)
    expect(resources.isFor(`${PUBLIC_URL}/mcp`, `/mcp${'/'.repeat(32_000)}x`)).toBe(false);
  // Of the processor's time, which other processes do not stretch.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});

describe('the metadata of a request is at', () => {
  const nameless = createResources({
    publicUrl: null,
    ownOrigin: createOwnOrigin({ publicUrl: null }),
    domains: [],
    audience: null,
    shared: false,
  });
  const at = (originalUrl: string, host: string, protocol: 'http' | 'https' = 'http') =>
    nameless.metadataUrlOf({ originalUrl, host, protocol });

  it.each([
    ['/mcp', '/mcp'],
    ['/mcp?services=a,b', '/mcp'],
    ['/mcp/acme/weather', '/mcp/acme/weather'],
    ['/api/v1/mcp/weather', '/api/v1/mcp/weather'],
    ['/mcp/"quoted"', ''],
    ['/chat', ''],
  ])('%s: the well-known path with "%s" behind it', (url, path) => {
    const well = `/.well-known/oauth-protected-resource${path}`;
    expect(resources.metadataUrlOf({ originalUrl: url, host: 'evil.example', protocol: 'http' })).toBe(
      PUBLIC_URL + well,
    );
    expect(at(url, 'gate.local:8402')).toBe(`http://gate.local:8402${well}`);
    expect(at(url, 'gate.local', 'https')).toBe(`https://gate.local${well}`);
  });

  it.each([
    '',
    'a b',
    'evil"example',
    'evil.example", resource_metadata="https://evil.example',
    'u@evil.example',
    'evil.example/x',
    // A stranger may own the name.
    'evil.example',
  ])('nowhere when Host is %j', (host) => {
    expect(at('/mcp', host)).toBeNull();
    expect(nameless.resourceOf({ originalUrl: '/mcp', host, protocol: 'http' }, '/mcp')).toBeNull();
  });
});
