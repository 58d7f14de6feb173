import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { followsLog } from '../../../src/foundation/store/log/shared-progress.ts';

// In an embedded database a statement that names a table of the ledger has its tables catch up with the log first, with
// a flush. What every request looks up must not.

const statements = (pattern: string) =>
  globSync(pattern).flatMap((path) => {
    const [, ...parts] = readFileSync(path, 'utf8').split(/^-- name: (\w+)\n/m);
    return parts.flatMap((name, at) => (at % 2 === 0 ? [[`${path} ${name}`, parts[at + 1]!] as const] : []));
  });

test('who calls, and what that one may, is looked up without the ledger', () => {
  const looked = statements('src/{gateway/auth,server/accounts}/**/*.sql');
  expect(looked.length).toBeGreaterThan(30);
  expect(looked.filter(([, text]) => followsLog(text)).map(([path]) => path)).toEqual([]);
});

test('what names a table of the ledger follows, and its comments alone do not', () => {
  expect(followsLog('SELECT spent FROM budgets WHERE id = $1')).toBe(true);
  expect(followsLog('-- Of keys.\nSELECT k.hash FROM api_keys AS k JOIN budgets AS b ON b.id = k.hash')).toBe(true);
  expect(followsLog('-- Days of other accounts.\nSELECT users FROM known_counts')).toBe(false);
  expect(followsLog('SELECT rules FROM account_limits WHERE account = $1')).toBe(false);
});

test('a view of what follows the log follows it too', () => {
  const views = readFileSync('docs/schema.sql', 'utf8').matchAll(/^CREATE VIEW (\w+) AS\n([^;]*);/gm);
  const following = [...views].filter(([, , text]) => followsLog(text!)).map(([, name]) => name!);
  expect(following.length).toBeGreaterThan(1);
  expect(following.filter((name) => !followsLog(`SELECT 1 FROM ${name}`))).toEqual([]);
});
