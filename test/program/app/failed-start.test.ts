import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadConfig } from '#config';
import { freshDirectory } from '../../../src/program/cli/gateway/start-checks.ts';
import { createApp, type AppOptions } from '#app';

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-failed-start-'));
afterAll(() => rmSync(dataDir, { recursive: true }));

const configOf = (text: string) =>
  loadConfig({ file: null, text, env: {}, mode: 'production', overrides: { 'server.data_dir': dataDir } });

const TREASURY = `
[[chains]]
network = "eip155:8453"
rpc_url = "http://127.0.0.1:9"
keypair_file = "/nowhere/treasury.json"
`;

const quiet: AppOptions = { writeLog() {} };
const failsLast: AppOptions = {
  ...quiet,
  get metricsText(): never {
    throw new Error('the last phase failed');
  },
};

test.each([
  ['the money', TREASURY, quiet, 'The treasury of eip155:8453'],
  ['the last phase', '', failsLast, 'the last phase failed'],
])(
  'a start that fails at %s closes what it opened: the next one gets the database',
  async (_of, toml, options, why) => {
    await expect(createApp(configOf(toml), options)).rejects.toThrow(why);
    const app = await createApp(configOf(''), quiet);
    await app.close();
  },
);

test('a start that fails late leaves no database, keys or folders behind where nothing was', async () => {
  const folder = join(dataDir, 'new', 'data');
  const config = { ...configOf(''), dataDir: folder };
  const fresh = freshDirectory(config)!;
  const error = await createApp(config, failsLast).catch((failure: unknown) => failure);
  expect(existsSync(join(folder, 'tollgate.db'))).toBe(true);
  fresh.clear({ code: 'in_use' });
  expect(existsSync(join(folder, 'tollgate.db'))).toBe(true);
  fresh.clear(error);
  expect(existsSync(join(dataDir, 'new'))).toBe(false);
  expect(freshDirectory(configOf(''))).toBeNull();
});
