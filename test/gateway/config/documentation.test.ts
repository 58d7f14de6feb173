import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OPTIONS } from '../../../src/gateway/config-options.ts';
import { optionRows } from './option-rows.ts';

const page = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');

test('docs/configuration.md has a row for every option, as the schema says it, and no other', () => {
  expect(page.split('\n').filter((line) => line.startsWith('| `'))).toEqual(optionRows);
});

test('it names every secret', () => {
  const sentence = page.split('\n').find((line) => line.startsWith('Secrets are '))!;
  for (const [key, { secret }] of Object.entries(OPTIONS)) expect(sentence.includes(`\`${key}\``), key).toBe(secret);
});
