import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OPTION_TABLES, withOptionTables } from '../../../scripts/configuration-tables.ts';

const page = readFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8');

test('the tables of docs/reference/configuration.md are those of the options; `npm run docs` writes them', () => {
  expect(withOptionTables(page)).toBe(page);
});

test('each table is there once, and no other', () => {
  expect(() => withOptionTables(page.replace('<!-- options: limits -->', ''))).toThrow('no place for limits');
  expect(() => withOptionTables(page.replace('options: limits', 'options: server'))).toThrow('on the page twice');
  expect(() => withOptionTables(page.replace('options: limits', 'options: bounds'))).toThrow('not a table of options');
});

test('it names every secret', () => {
  const sentence = page.split('\n').find((line) => line.startsWith('Secrets are '))!;
  const named = [...sentence.split('. ')[0]!.matchAll(/`([^`]+)`/g)].map(([, key]) => key);
  const secrets = Object.values(OPTION_TABLES).flatMap((options) =>
    Object.entries(options).flatMap(([key, { secret }]) => (secret ? [key] : [])),
  );
  expect(named).toEqual(secrets);
});
