import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { providerProblemsOf } from './load.ts';

const file = fileURLToPath(new URL('../../../examples/provider.toml', import.meta.url));
const env = { ACME_API_KEY: 'key-1', SEARCH_TOKEN: 'token-1' };

test('examples/provider.toml is right', () => {
  const { router, services } = loadProviderFile({ file, env });
  expect(router).toMatchObject({ url: 'https://router.example.com', domain: 'router.example.com', apiKey: null });
  expect(router.wallet).toEqual({
    chainId: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    keypairFile: `${dirname(file)}/provider-keypair.json`,
  });
  expect(services.map(({ service: { primitive, name }, target }) => [primitive, name, target])).toEqual([
    ['model', 'acme/llama-3.3-70b', { kind: 'http', url: 'http://127.0.0.1:8000/v1', apiKey: 'key-1' }],
    [
      'tool',
      'acme/search',
      {
        kind: 'command',
        command: 'npx',
        args: ['-y', '@acme/search-mcp'],
        env: { SEARCH_TOKEN: 'token-1' },
        cwd: dirname(file),
        shared: false,
        sessionsMax: 16,
        sessionIdleMs: 300_000,
        roots: false,
      },
    ],
    ['tool', 'acme/llama-3.3-70b', { kind: 'http', url: 'http://127.0.0.1:8001/mcp', apiKey: null }],
    ['agent', 'acme/researcher', { kind: 'http', url: 'http://127.0.0.1:8002', apiKey: null }],
  ]);
});

test('it needs nothing but the two variables, and what it has commented out is right too, in place of what it is for', () => {
  const text = readFileSync(file, 'utf8');
  expect(providerProblemsOf(text)).toHaveLength(2);
  const uncommented = text
    .replaceAll(/^# ((?:private_key|domain|agent_card_path) = .*)$/gm, '$1')
    .replace(/^keypair_file = .*$/m, '');
  const keyed = text.replace(/^\[router\.siwx\][^]*?^# api_key/m, 'api_key');
  for (const other of [uncommented, keyed]) {
    expect(other).not.toBe(text);
    expect(providerProblemsOf(other, { env })).toMatchObject([
      { wrong: expect.stringMatching(/variable (?:PROVIDER_PRIVATE_KEY|TOLLGATE_API_KEY), which is not set/) },
    ]);
  }
});
