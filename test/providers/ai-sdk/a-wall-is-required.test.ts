import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '#config';
import { createApp } from '../../../src/program/app/app.ts';
import { loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { fillDataDirectory } from '../../support/data-directory.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../support/nothing-left-to-luck.ts';
import { runProxy } from '../../support/provider-proxy.ts';
import { installHostile } from './support/hostile-package.ts';

// What must be hidden lies here where the package is installed, so no wall of any machine can hide it.

const REFUSED = /params\.sdk[\s\S]*packages\.wall is "required"[\s\S]*it opens [\s\S]*bubblewrap/;

const MODEL = `
[[models]]
name = "evil/model"
provider_name = "Evil"
context_length = 8000
pricing = { prompt = 1, completion = 1 }
params = { model = "m", sdk = "hostile" }
`;

test('a gateway does not start without the wall that its file requires', async () => {
  const directory = installHostile();
  const dataDir = join(directory, 'node_modules', 'data');
  mkdirSync(dataDir);
  fillDataDirectory(dataDir);
  chmodSync(dataDir, 0o755);
  const logs: string[] = [];
  const start = (wall: string) =>
    createApp(
      loadConfig({
        file: join(directory, 'tollgate.toml'),
        text: `${MODEL}[packages]\nwall = "${wall}"\n`,
        env: { TOLLGATE_ADMIN_KEY: 'admin-key-of-the-tests-0123456789' },
        mode: 'production',
        overrides: { 'server.data_dir': dataDir, 'server.port': 0, 'server.host': '127.0.0.1' },
      }),
      { ...NOTHING_LEFT_TO_LUCK, writeLog: (line) => logs.push(line) },
    );
  await expect(start('required')).rejects.toThrow(REFUSED);
  logs.length = 0;
  const app = await start('if_available');
  onTestFinished(() => app.close());
  expect(logs.join('\n')).toContain('packages of the AI SDK run without a second wall');
});

test('a provider does not start without the wall that its file requires', async () => {
  const directory = installHostile();
  writeFileSync(join(directory, 'node_modules', 'wallet.json'), '[]', { mode: 0o644 });
  const config = loadProviderFile({
    file: join(directory, 'provider.toml'),
    text: `
[router]
url = "http://127.0.0.1:1"
[router.siwx]
chain_id = "solana:mainnet"
keypair_file = "node_modules/wallet.json"
[packages]
wall = "required"
${MODEL}`,
    env: {},
  });
  const { proxy, lines } = runProxy({ url: config.router.url, services: config.services, options: { config } });
  await expect(proxy.closed).rejects.toThrow(REFUSED);
  expect(lines.map(({ msg }) => msg)).toContain('packages of the AI SDK run without a second wall');
});
