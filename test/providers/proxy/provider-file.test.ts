import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadProvider, loadProviderFile } from '../../../src/providers/proxy/provider-file.ts';
import { createWallet } from '../../../src/providers/proxy/wallet/wallet.ts';
import { writeKeypairFile } from '../../../src/providers/proxy/wallet/load-wallet.ts';
import { block } from '../../server/config/load.ts';
import { loadProviderText as load, providerProblemsOf as problemsOf } from './load.ts';

const BLOCK = block('models');
const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const SECRET = `0x${'1'.repeat(64)}`;
const routerOf = (lines: string, env = {}) =>
  load(`[router]\nurl = "https://router.example/"\n${lines}\n${BLOCK}`, { env }).router;
const keysOf = (router: string, env = {}) =>
  problemsOf(`${router}\n${BLOCK}`, { env }).map(({ line, key, wrong }) => `${line} ${key} ${wrong}`);

describe("a provider's file", () => {
  test('has the form of the interface', () => {
    const text = `
[router]
url = "https://router.example"
[router.siwx]
chain_id = "${SOLANA}"
keypair_file = "keys/provider.json"

[[models]]
name = "acme/small"
display_name = "Acme: Small"
provider_name = "Acme"
context_length = 8192
input_modalities = ["text", "image"]
output_modalities = ["text"]
[models.pricing]
prompt = 0.15
completion = 0.6
image = 0.001
[models.params]
model = "small"
api_base = "http://127.0.0.1:8000/v1"
api_key = "std::env::UPSTREAM_KEY"
`;
    expect(load(text, { env: { UPSTREAM_KEY: 'secret-1' } })).toMatchObject({
      file: '/etc/acme/provider.toml',
      router: {
        url: 'https://router.example',
        domain: 'router.example',
        wallet: { chainId: SOLANA, keypairFile: '/etc/acme/keys/provider.json' },
        apiKey: null,
      },
      services: [{ service: { name: 'acme/small' }, target: { url: 'http://127.0.0.1:8000/v1', apiKey: 'secret-1' } }],
    });
  });

  test('may have a wallet or an API key, or both', () => {
    const wallet = { chainId: 'eip155:8453', privateKey: SECRET };
    const siwx = '[router.siwx]\nchain_id = "eip155:8453"\nprivate_key = "std::env::SECRET"';
    expect(routerOf(siwx, { SECRET })).toMatchObject({ wallet, apiKey: null });
    expect(routerOf('api_key = "std::env::ROUTER_KEY"', { ROUTER_KEY: 'k1' })).toMatchObject({
      wallet: null,
      apiKey: 'k1',
    });
    expect(routerOf(`api_key = "k2"\n${siwx}`, { SECRET })).toMatchObject({ wallet, apiKey: 'k2' });
  });

  test('is frozen to its depth', () => {
    const config = load(BLOCK);
    for (const part of [
      config,
      config.router,
      config.services,
      config.services[0]!.service.rates,
      config.services[0]!.target,
    ])
      expect(Object.isFrozen(part)).toBe(true);
  });

  test.each([
    ['http://127.0.0.1:8402', 'http://127.0.0.1:8402', '127.0.0.1:8402'],
    ['https://Router.example:443/', 'https://router.example', 'router.example'],
    ['https://router.example/api/v1/', 'https://router.example', 'router.example'],
    ['https://example.org/router/', 'https://example.org/router', 'example.org'],
  ])('with %s dials %s and signs in for %s', (written, url, domain) => {
    expect(load(`[router]\nurl = "${written}"\napi_key = "k"\n${BLOCK}`).router).toMatchObject({ url, domain });
  });

  test('may name another domain', () => {
    expect(
      routerOf(
        'api_key = "k"\n[router.siwx]\nchain_id = "solana:devnet"\nkeypair_file = "/k.json"\ndomain = "other.example:8402"',
      ),
    ).toMatchObject({
      domain: 'other.example:8402',
      wallet: { chainId: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', keypairFile: '/k.json' },
    });
  });
});

describe('what is wrong with the router is told with line and key', () => {
  const siwx = '[router]\nurl = "https://r.example"\n[router.siwx]\n';
  test.each([
    ['[router]\napi_key = "k"', '1 router.url is missing'],
    ['router = 3', '1 router is 3'],
    ['[router]\nurl = "https://r.example"', '1 router has no credential of the provider'],
    ['[router]\nurl = "https://r.example"\napi_key = ""', '3 router.api_key is empty'],
    [
      '[router]\nurl = "wss://r.example"\napi_key = "k"',
      '2 router.url is "wss://r.example": it is not a http:// or https:// URL',
    ],
    ['[router]\nurl = "https://u:p@r.example"\napi_key = "k"', '2 router.url contains credentials'],
    ['[router]\nurl = "https://r.example"\napi_kye = "k"\napi_key = "k"', '3 router.api_kye is not an option'],
    ['[router]\nurl = "https://r.example"\nsiwx = 3', '3 router.siwx is 3'],
    [`${siwx}keypair_file = "k.json"`, '3 router.siwx.chain_id is missing'],
    [`${siwx}chain_id = "eip155:1"`, '3 router.siwx.keypair_file is missing'],
    [
      `${siwx}chain_id = "mainnet"\nkeypair_file = "k.json"`,
      '4 router.siwx.chain_id is not a chain that a wallet can sign in on',
    ],
    [
      `${siwx}chain_id = "eip155:1"\nkeypair_file = "k.json"\nprivate_key = "0x1"`,
      '6 router.siwx.private_key stands beside keypair_file',
    ],
    [
      `${siwx}chain_id = "eip155:1"\nkeypair_file = "~/k.json"`,
      '5 router.siwx.keypair_file begins with ~, which only shells know',
    ],
    [`${siwx}chain_id = "eip155:1"\nkeypair_file = "${SECRET}"`, '5 router.siwx.keypair_file is a key itself'],
    [
      `${siwx}chain_id = "eip155:1"\nprivate_key = "std::env::NONE"`,
      '5 router.siwx.private_key reads the environment variable NONE, which is not set',
    ],
    [
      `${siwx}chain_id = "eip155:1"\nkeypair_file = "k"\ndomain = "A.example"`,
      '6 router.siwx.domain is "A.example": it is written a.example',
    ],
  ])('%j → %s', (router, says) => {
    expect(keysOf(router)).toEqual([says]);
  });

  test('also that it is not there at all, and that nothing is offered', () => {
    const problems = problemsOf('', { text: '' });
    expect(problems).toMatchObject([
      { line: null, key: 'router', wrong: 'is missing' },
      { line: null, key: 'models', wrong: 'is missing, and nothing else is offered' },
    ]);
    expect(problemsOf('models = []')).toMatchObject([{ key: 'models', wrong: 'offers nothing' }]);
  });
});

test('all problems come at once, those of the wallet among them', async () => {
  const text = `
[router]
url = "router.example"
[router.siwx]
chain_id = "${SOLANA}"
keypair_file = "absent.json"
[server]
port = 1
${block('models', { 'pricing.prompt': '0.00000015', name: '"../x"' })}
${block('tools', { endpoint: null })}
`;
  const error: unknown = await loadProvider({ file: '/etc/acme/provider.toml', text, env: {} }).catch(
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({
    name: 'ConfigError',
    problems: [
      { line: 7, key: 'server', wrong: 'is not an option' },
      { line: 3, key: 'router.url' },
      { line: 10, key: 'models[0].name' },
      { line: 14, key: 'models[0].pricing.prompt', wrong: expect.stringContaining('per 1M tokens that is 0.15') },
      { line: 21, key: 'tools[0].endpoint' },
      {
        line: 6,
        key: 'router.siwx.keypair_file',
        wrong: expect.stringMatching(/\/etc\/acme\/absent\.json does not exist$/),
        right: expect.stringContaining('tollgate keygen'),
      },
    ],
  });
});

test('the wallet is read from beside the file, whatever the working directory', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-provider-'));
  const { wallet, fileText } = await createWallet('solana');
  await writeKeypairFile(join(directory, 'k.json'), fileText);
  const file = join(directory, 'provider.toml');
  writeFileSync(
    file,
    `[router]\nurl = "http://127.0.0.1:1"\n[router.siwx]\nchain_id = "solana:mainnet"\nkeypair_file = "k.json"\n${BLOCK}`,
  );
  const loaded = await loadProvider({ file, env: {} });
  expect(loaded.wallet?.address).toBe(wallet.address);
  expect(loaded.config).toEqual(loadProviderFile({ file, env: {} }));
});

test('a file that does not exist is said so', () => {
  expect(() => loadProviderFile({ file: '/nowhere/provider.toml', env: {} })).toThrow('does not exist');
});
