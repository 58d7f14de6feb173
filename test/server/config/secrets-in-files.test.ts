import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { explainConfig, loadConfig } from '../../../src/server/config/index.ts';
import { modelBlock } from './load.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-secrets-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const KEY = 'admin-key-of-a-file-0123456789abcdef';
const fileOf = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const load = (env: Record<string, string>, text = '') =>
  loadConfig({ file: 'tollgate.toml', text, env, mode: 'production', overrides: { 'server.data_dir': folder } });

test('a secret of an option is the text of its file, without the line end', () => {
  const env = { TOLLGATE_ADMIN_KEY_FILE: fileOf('admin-key', `${KEY}\n`) };
  expect(load(env).adminKey).toBe(KEY);
  const { options } = explainConfig({ file: null, text: '', env, mode: 'production' });
  expect(options.find(({ key }) => key === 'server.admin_key')).toMatchObject({
    hidden: true,
    value: null,
    from: 'environment variable TOLLGATE_ADMIN_KEY_FILE',
  });
});

test('a secret that the file of the configuration names is, too', () => {
  const text = modelBlock().replace(/api_key = .*/, 'api_key = "std::env::UPSTREAM_KEY"');
  expect(text).toContain('UPSTREAM_KEY');
  const env = { TOLLGATE_ADMIN_KEY: KEY, UPSTREAM_KEY_FILE: fileOf('upstream-key', 'sk-of-a-file\r\n') };
  expect(inspect(load(env, text).services, { depth: null })).toContain('sk-of-a-file');
  expect(() => load({ TOLLGATE_ADMIN_KEY: KEY }, text)).toThrow('set UPSTREAM_KEY, or UPSTREAM_KEY_FILE to the file');
});

test.each([
  ['both', () => ({ TOLLGATE_ADMIN_KEY: KEY, TOLLGATE_ADMIN_KEY_FILE: fileOf('both', KEY) }), 'one of TOLLGATE_ADMIN'],
  ['no file', () => ({ TOLLGATE_ADMIN_KEY_FILE: join(folder, 'absent') }), 'TOLLGATE_ADMIN_KEY_FILE (ENOENT)'],
  ['a folder', () => ({ TOLLGATE_ADMIN_KEY_FILE: folder }), 'TOLLGATE_ADMIN_KEY_FILE (EISDIR)'],
  ['too much', () => ({ TOLLGATE_ADMIN_KEY_FILE: fileOf('much', 'k'.repeat(70_000)) }), 'at most 65536 bytes'],
])('%s is refused with the name of the variable, and without the secret', (_what, env, message) => {
  const read = () => load(env());
  expect(read).toThrow(message);
  expect(read).not.toThrow(KEY);
});

test('options that are no secret are not read from files', () => {
  const port = load({ TOLLGATE_ADMIN_KEY: KEY, PORT_FILE: fileOf('port', '9999') }).port;
  expect(port).toBe(8402);
});
