import { describe, expect, test } from 'vitest';
import { load, problemsOf } from './load.ts';

const chain = (network: string, url: string) => `[[chains]]\nnetwork = ${network}\nrpc_url = ${url}\n`;
const URL = '"https://rpc.example/key"';

describe('[[chains]]', () => {
  test('are the chains that the gateway can ask', () => {
    const text = chain('"eip155:8453"', '"std::env::RPC"') + chain('"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"', URL);
    expect(load(text, { env: { RPC: 'http://127.0.0.1:8545' } }).chains).toEqual([
      { network: 'eip155:8453', rpcUrl: 'http://127.0.0.1:8545' },
      { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', rpcUrl: 'https://rpc.example/key' },
    ]);
    expect(load('').chains).toEqual([]);
  });

  test.each([
    ['"base"', URL, 'chains[0].network'],
    ['8453', URL, 'chains[0].network'],
    ['"eip155:1"', '"wss://rpc.example/canary7f3a"', 'chains[0].rpc_url'],
    ['"eip155:1"', '["canary7f3a"]', 'chains[0].rpc_url'],
    ['"eip155:1"', `${URL}\nrpc = 1`, 'chains[0].rpc'],
  ])('refuse %s %s', (network, url, key) => {
    const problems = problemsOf(chain(network, url));
    expect(problems).toMatchObject([{ key }]);
    expect(JSON.stringify(problems)).not.toContain('canary7f3a');
  });

  test('are whole, and stand once each', () => {
    expect(problemsOf('[[chains]]')).toMatchObject([{ key: 'chains[0].network' }, { key: 'chains[0].rpc_url' }]);
    expect(problemsOf(chain('"eip155:1"', URL) + chain('"eip155:1"', URL))).toMatchObject([{ key: 'chains[1].network' }]);
    expect(problemsOf('chains = 3')).toMatchObject([{ key: 'chains' }]);
    expect(problemsOf('chains = [3]')).toMatchObject([{ key: 'chains[0]' }]);
  });
});
