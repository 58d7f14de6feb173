import { expect, test } from 'vitest';
import { loadConfig } from '#config';
import { listeningFacts } from '../../../src/program/cli/gateway/start-notices.ts';

test('the line of a gateway that listens counts models and tools for themselves, by name', () => {
  const model = (name: string, provider: string) =>
    `[[models]]\nname = "${name}"\nprovider_name = "${provider}"\npricing = { prompt = 1, completion = 1 }\nparams = { model = "m", api_base = "http://127.0.0.1:9/v1" }\n`;
  const text = `${model('a/one', 'A')}${model('a/one', 'B')}${model('a/two', 'A')}
[[tools]]
name = "a/tools"
provider_name = "A"
endpoint = "http://127.0.0.1:9/mcp"
pricing = { per_call = 0 }
`;
  const config = loadConfig({
    file: 'x.toml',
    text,
    env: {},
    mode: 'production',
    overrides: { 'server.data_dir': '/tmp/x' },
  });
  expect(listeningFacts(config, { address: 'http://h', file: 'x.toml' })).toEqual({
    address: 'http://h',
    config: 'x.toml',
    models: 2,
    tools: 1,
    data: config.dataDir,
  });
});
