import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { optionRows, optionTables } from './option-rows.ts';

const page = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');

test('docs/configuration.md has a row for every option, as the schema says it, and no other', () => {
  // In the order that helps a reader, which is not that of the code.
  expect(
    page
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .sort(),
  ).toEqual([...optionRows].sort());
});

test('it names every secret', () => {
  const sentence = page.split('\n').find((line) => line.startsWith('Secrets are '))!;
  const named = [...sentence.split('. ')[0]!.matchAll(/`([^`]+)`/g)].map(([, key]) => key);
  const secrets = optionTables.flatMap(([prefix, options]) =>
    Object.entries(options).flatMap(([key, { secret }]) => (secret ? [prefix + key] : [])),
  );
  expect(named).toEqual(secrets);
});
