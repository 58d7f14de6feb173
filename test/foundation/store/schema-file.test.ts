import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { schemaText } from '../../../scripts/schema.ts';
import { ROOT } from '../../architecture/source.ts';

test('docs/schema.sql shows the tables as all migrations make them', () => {
  const text = schemaText();
  expect(text).toContain('CREATE TABLE accounts (');
  expect(readFileSync(join(ROOT, 'docs/schema.sql'), 'utf8'), '`npm run docs` writes it').toBe(text);
});
