import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig } from '#config';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';

const blocks = [
  ...readFileSync(new URL('../../../README.md', import.meta.url), 'utf8').matchAll(/^```toml\n([\s\S]*?)^```/gm),
].map(([, text]) => text!);

test('the files in README.md are right as they are: that of a gateway', () => {
  const { services } = loadConfig({ file: null, text: blocks[0]!, env: { ACME_API_KEY: 'a-key' }, mode: 'production' });
  expect(services.map(({ service }) => [service.primitive, service.name])).toEqual([
    ['model', 'acme/large'],
    ['tool', 'acme/search'],
    ['agent', 'acme/planner'],
  ]);
});

test('and that of a provider', () => {
  expect(blocks).toHaveLength(2);
  expect(
    loadProviderFile({ file: null, text: blocks[1]!, env: {} }).services.map(({ service }) => service.name),
  ).toEqual(['acme/mock']);
});
