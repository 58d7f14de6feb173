import { describe, expect, it } from 'vitest';
import { createResources } from '../../../../src/auth/oauth/resources.ts';
import { PUBLIC_URL } from './token-world.ts';

const resources = createResources({
  publicUrl: PUBLIC_URL,
  domains: ['gate.internal:8402', 'localhost:8402', '[::1]:8402'],
  audience: 'api://tollgate',
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
    const nameless = createResources({ publicUrl: null, domains: [], audience: null });
    expect(nameless.named).toBe(false);
    for (const audience of ['', 'null', 'https://gate.example/mcp']) expect(nameless.isAudience(audience)).toBe(false);
  });
});

describe('the metadata of a request is at', () => {
  const nameless = createResources({ publicUrl: null, domains: [], audience: null });
  const at = (url: string, host: string, protocol: 'http' | 'https' = 'http') =>
    nameless.metadataUrlOf({ url, host, protocol });

  it.each([
    ['/mcp', '/mcp'],
    ['/mcp?services=a,b', '/mcp'],
    ['/mcp/acme/weather', '/mcp/acme/weather'],
    ['/api/v1/mcp/weather', '/api/v1/mcp/weather'],
    ['/mcp/"quoted"', ''],
    ['/chat', ''],
  ])('%s: the well-known path with "%s" behind it', (url, path) => {
    const well = `/.well-known/oauth-protected-resource${path}`;
    expect(resources.metadataUrlOf({ url, host: 'evil.example', protocol: 'http' })).toBe(PUBLIC_URL + well);
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
  ])('nowhere when Host is %j', (host) => {
    expect(at('/mcp', host)).toBeNull();
  });
});
