import { expect, test } from 'vitest';
import { load, problemsOf } from './load.ts';

// Values that a gateway would start with, and that could never work.

const SOLANA = '8YbUNXxsq9osKhq27omurM7im7gZhL6jWZNWWsTQ1uZm';
const EVM = '0x52908400098527886E0F7030069857D2E4169EE7';

test('wallets sign in at the address that clients use', () => {
  const file = '[server]\npublic_url = "https://gate.example:8402/"\n[sign_in]\ndomains = ["a.example"]';
  expect(load(file).signIn.domains).toEqual(['a.example', 'gate.example:8402']);
});

test.each([
  SOLANA,
  EVM,
  `solana:${SOLANA}`,
  `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:${SOLANA}`,
  `eip155:${EVM.toLowerCase()}`,
  `eip155:8453:${EVM}`,
  'tollgate:local:acme',
  'oauth:id_example:user%2F1',
])('a provider may be listed as %s', (name) => {
  expect(load(`[tunnel]\nproviders = ["${name}"]`).tunnel.providers).toEqual([name]);
});

test.each(['OpenAI', 'acme', EVM.slice(0, -1), `${EVM}0`, 'solana:mainnet', 'local:acme', 'tollgate:local:Acme', '*'])(
  'a provider that is listed as %s could not be admitted',
  (name) => {
    const problems = problemsOf(`[tunnel]\nproviders = ["${SOLANA}", "${name}"]`);
    expect(problems).toMatchObject([{ key: 'tunnel.providers' }]);
    expect(JSON.stringify(problems)).toContain('which is not a public key or an account id');
  },
);

test.each(['https://10.0.0.1:8403', 'https://gateway-1:8403', 'https://127.0.0.1:0', 'https://[fd00::1]:8403'])(
  'other gateways can reach %s',
  (url) => {
    expect(load(`[cluster]\nurl = "${url}"`).cluster.url).toBe(url);
  },
);

test.each([
  ['https://0.0.0.0:8403', 'names all addresses of a machine'],
  ['https://[::]:8403', 'names all addresses of a machine'],
  ['https://10.0.0.1:8403/gateway', 'has more than a host and a port'],
  ['https://10.0.0.1:8403/?a=b', 'has more than a host and a port'],
  ['https://me:secret@10.0.0.1:8403', 'has a user or a password'],
])('no other gateway can reach %s', (url, fault) => {
  const problems = problemsOf(`[cluster]\nurl = "${url}"`);
  expect(problems).toMatchObject([{ key: 'cluster.url' }]);
  expect(JSON.stringify(problems)).toContain(fault);
  expect(JSON.stringify(problems)).not.toContain('secret');
});
