import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadStatements } from '../../../src/foundation/store/statement.ts';

describe('named statements of an SQL file', () => {
  let folder: string;
  let module: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'statements-'));
    module = pathToFileURL(join(folder, 'tasks.ts')).href;
    await writeFile(
      join(folder, 'tasks.sql'),
      '-- name: findTask\n-- $1: the id.\nSELECT 1\n\n-- name: endTask\nSELECT 2\n',
    );
    await writeFile(join(folder, 'loose.sql'), 'SELECT 0\n-- name: findTask\nSELECT 1\n');
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('have their own text, comments included', () => {
    const sql = loadStatements(module, './tasks.sql', ['findTask', 'endTask']);
    expect(sql.findTask.text).toBe('-- $1: the id.\nSELECT 1');
    expect(sql.endTask.text).toBe('SELECT 2');
    expect(sql.findTask.name).not.toBe(sql.endTask.name);
  });
  test('that the file lacks are named', () =>
    expect(() => loadStatements(module, './tasks.sql', ['findTasks'])).toThrow('no statement "-- name: findTasks"'));
  test('need a name for each text', () =>
    expect(() => loadStatements(module, './loose.sql', ['findTask'])).toThrow('before the first line'));
});
