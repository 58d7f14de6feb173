import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/gateway/config-file.ts';
import { problemsOf } from './load.ts';
import { readFileSync } from 'node:fs';

const file = fileURLToPath(new URL('../../../examples/tollgate.toml', import.meta.url));

test('examples/tollgate.toml is right', () => {
  const config = loadConfig({ file, env: { OPENAI_API_KEY: 'key-1', ACME_API_KEY: 'key-2' }, mode: 'production' });
  expect(config.services.map(({ name, apiBase, apiKey }) => ({ name, apiBase, apiKey }))).toEqual([
    { name: 'openai/gpt-4o-mini', apiBase: 'https://api.openai.com/v1', apiKey: 'key-1' },
    { name: 'meta/llama-3.3-70b', apiBase: 'https://inference.acme.example/v1', apiKey: 'key-2' },
    { name: 'local/qwen3', apiBase: 'http://127.0.0.1:11434/v1', apiKey: null },
  ]);
  expect(config).toMatchObject({ host: '127.0.0.1', port: 8402, billing: { feeBps: 100 } });
});

test('it needs nothing but the two keys, and what it has commented out is right too', () => {
  const text = readFileSync(file, 'utf8');
  expect(problemsOf(text)).toHaveLength(2);
  const uncommented = text.replaceAll(/^# ((?:\[(?:database|redis)\]|url = |admin_key = ).*)$/gm, '$1');
  expect(uncommented).not.toBe(text);
  const missing = problemsOf(uncommented, { env: { OPENAI_API_KEY: 'key-1', ACME_API_KEY: 'key-2' } });
  expect(missing.map(({ key }) => key)).toEqual(['server.admin_key', 'database.url', 'redis.url']);
});
