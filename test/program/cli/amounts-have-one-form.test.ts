import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatUsd } from '#billing/amounts';
import { usd } from '../../../src/program/cli/terminal.ts';

// All commands print amounts as the API does: 1.5, with the unit USD behind it or above the column.

test.each([0, 1, 37, 100_000, 1_000_000, 1_500_000, 25_000_000, 12_345_678_901, -2_345_000])(
  '%d micro-USD',
  (micro) => {
    expect(usd(micro)).toBe(formatUsd(BigInt(micro)));
  },
);

/** An amount in another form: with a fixed number of places, or behind a sign of dollars. */
const OTHER_FORM = /1e6\)\.toFixed\(6\)|`\$\$\{|'\$'/;

test('no command has a form of its own', () => {
  const folder = join(import.meta.dirname, '../../../src/program/cli');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  expect(files).toContain(join('admin', 'audit.ts'));
  const other = files.filter((path) => OTHER_FORM.test(readFileSync(join(folder, path), 'utf8')));
  // terminal.ts makes the one form.
  expect(other).toEqual(['terminal.ts']);
});
