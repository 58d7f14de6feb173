import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import type { ConfigProblem } from '../../../src/server/config/problem.ts';
import { loadConfig } from '../../../src/server/config/file.ts';
import { problemsOf } from './load.ts';

const file = fileURLToPath(new URL('../../../examples/tollgate.toml', import.meta.url));

test('examples/tollgate.toml is right', () => {
  const config = loadConfig({ file, env: { OPENAI_API_KEY: 'key-1', ACME_API_KEY: 'key-2' }, mode: 'production' });
  const media = { url: 'https://media.acme.example/v1', apiKey: 'key-2' };
  expect(config.services.map(({ service: { primitive, name }, target }) => [primitive, name, target])).toMatchObject([
    ['model', 'openai/gpt-4o-mini', { url: 'https://api.openai.com/v1', apiKey: 'key-1' }],
    ['model', 'meta/llama-3.3-70b', { url: 'https://inference.acme.example/v1', apiKey: 'key-2' }],
    ['model', 'local/qwen3', { url: 'http://127.0.0.1:11434/v1', apiKey: null }],
    ['tool', 'acme/weather', { url: 'https://weather.acme.example/mcp', apiKey: 'key-2' }],
    ['agent', 'acme/travel', { url: 'https://travel.acme.example', apiKey: null }],
    ['image', 'acme/paint', media],
    ['video', 'acme/film', media],
  ]);
  expect(config).toMatchObject({ host: '127.0.0.1', port: 8402, billing: { feeBps: 100 } });
});

test('it needs nothing but the two keys, and what it has commented out is right too', () => {
  const text = readFileSync(file, 'utf8');
  const missing = (problems: readonly ConfigProblem[]) =>
    new Set(problems.map(({ wrong }) => /variable (\w+), which is not set/.exec(wrong)?.[1]));
  expect(missing(problemsOf(text))).toEqual(new Set(['OPENAI_API_KEY', 'ACME_API_KEY']));
  const uncommented = text.replaceAll(/^# ((?:\[+[a-z]+\]+|[a-z_]+ = ).*)$/gm, '$1');
  expect(uncommented).not.toBe(text);
  const secrets = problemsOf(uncommented, { env: { OPENAI_API_KEY: 'key-1', ACME_API_KEY: 'key-2' } });
  expect(missing(secrets)).toEqual(
    new Set(['TOLLGATE_ADMIN', 'POSTGRES_URL', 'REDIS_ADDRESS', 'BASE_RPC_URL', 'BASE_TREASURY_KEY']),
  );
});
