import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { load, problemsOf } from './load.ts';

const chain = (network: string, url: string, more = '') =>
  `[[chains]]\nnetwork = ${network}\nrpc_url = ${url}\n${more}\n`;
const URL = '"https://rpc.example/key"';
const BASE = '"eip155:8453"';
const OTHER = '"eip155:31337"';
const SOLANA = '"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"';
/** No key of anybody: they are only looked at by their form here. */
const EVM_KEY = `private_key = "${'0123456789abcdef'.repeat(4)}"`;
const SOLANA_KEY = `private_key = "${'5'.repeat(87)}"`;
const TOKEN = 'asset = "0x5fbdb2315678afecb367f032d93f642f64180aa3"';

describe('[[chains]]', () => {
  test('are the chains that the gateway can ask', () => {
    const text = chain(BASE, '"std::env::RPC"') + chain(SOLANA, URL);
    expect(load(text, { env: { RPC: 'http://127.0.0.1:8545' } }).chains).toEqual([
      { network: 'eip155:8453', rpcUrl: 'http://127.0.0.1:8545', payments: null },
      { network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', rpcUrl: 'https://rpc.example/key', payments: null },
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
    expect(problemsOf(chain('"eip155:1"', URL) + chain('"eip155:1"', URL))).toMatchObject([
      { key: 'chains[1].network' },
    ]);
    expect(problemsOf('chains = 3')).toMatchObject([{ key: 'chains' }]);
    expect(problemsOf('chains = [3]')).toMatchObject([{ key: 'chains[0]' }]);
  });
});

describe('with a treasury, payments go over a chain', () => {
  const paymentsOf = (text: string, env = {}) => load(text, { env }).chains[0]!.payments;

  test('a known network needs its key alone', () => {
    expect(paymentsOf(chain(BASE, URL, 'private_key = "std::env::KEY"'), { KEY: `0x${'ab'.repeat(32)}` })).toEqual({
      treasury: { privateKey: `0x${'ab'.repeat(32)}` },
      asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      assetName: 'USD Coin',
      assetVersion: '2',
      facilitator: 'in-process',
      minTopup: 100_000n,
      topupMax: 1_000_000_000n,
      unfinalMax: 1_000_000_000n,
      confirmations: 1,
      finality: null,
      opensAccounts: false,
      moveTo: [],
      previous: null,
      withdrawalMin: 1_000_000n,
      withdrawalFee: 0n,
      tokenAccountFee: 0n,
      withdrawalDailyMax: 10_000_000_000n,
      timeoutMs: 10_000,
    });
    expect(paymentsOf(chain('"eip155:84532"', URL, EVM_KEY))).toMatchObject({ assetName: 'USDC', assetVersion: '2' });
    expect(paymentsOf(chain('"solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1"', URL, SOLANA_KEY))).toMatchObject({
      asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
      assetName: null,
      assetVersion: null,
    });
  });

  test('a file of the key lies beside the configuration', () => {
    expect(
      load(chain(SOLANA, URL, 'keypair_file = "t.json"'), { file: '/etc/tollgate/tollgate.toml' }).chains[0]!.payments!
        .treasury,
    ).toEqual({
      keypairFile: resolve('/etc/tollgate/t.json'),
    });
  });

  test('everything can be set', () => {
    const more = `${EVM_KEY}\n${TOKEN}\nasset_name = "T"\nasset_version = "1"\nfacilitator = "https://facilitator.example/x"\nmin_topup = 0.25\ntopup_max = "2"
unfinal_max = 0\nconfirmations = 3\nfinality = 64\nwithdrawal_min = 5\nwithdrawal_daily_max = 50\ntimeout_ms = 2_000`;
    expect(paymentsOf(chain(OTHER, URL, more))).toMatchObject({
      asset: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
      assetName: 'T',
      assetVersion: '1',
      facilitator: 'https://facilitator.example/x',
      minTopup: 250_000n,
      topupMax: 2_000_000n,
      unfinalMax: 0n,
      confirmations: 3,
      finality: 64,
      withdrawalMin: 5_000_000n,
      withdrawalDailyMax: 50_000_000n,
      timeoutMs: 2_000,
    });
  });

  test('token accounts are opened at a fee of their own', () => {
    const more = `${SOLANA_KEY}\nopens_accounts = true\ntoken_account_fee = 0.5\nwithdrawal_fee = 0.1`;
    expect(paymentsOf(chain(SOLANA, URL, more))).toMatchObject({
      opensAccounts: true,
      tokenAccountFee: 500_000n,
      withdrawalFee: 100_000n,
    });
  });

  test.each([
    ['of both kinds of keys', BASE, `${EVM_KEY}\nkeypair_file = "k"`, 'private_key', 'one of the two'],
    ['of a Solana key on an EVM chain', BASE, SOLANA_KEY, 'private_key', '32 bytes in hex'],
    ['of an EVM key on Solana', SOLANA, EVM_KEY, 'private_key', 'base58'],
    ['of what is no key', BASE, 'private_key = "canary7f3a"', 'private_key', '32 bytes in hex'],
    [
      'of a key in the place of its file',
      BASE,
      `keypair_file = "${'0123456789abcdef'.repeat(4)}"`,
      'keypair_file',
      'private_key',
    ],
    ['of a domain on Solana', SOLANA, `${SOLANA_KEY}\nasset_name = "USDC"`, 'asset_name', 'leave it out'],
    ['of blocks of finality on Solana', SOLANA, `${SOLANA_KEY}\nfinality = 3`, 'finality', 'leave it out'],
    ['of no asset where it is not known', OTHER, EVM_KEY, 'asset', 'eip155:8453'],
    [
      'of an asset of the other family',
      BASE,
      `${EVM_KEY}\nasset = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"`,
      'asset',
      '40 hex digits',
    ],
    ['of an asset on Solana that is of EVM', SOLANA, `${SOLANA_KEY}\n${TOKEN}`, 'asset', 'base58'],
    [
      'of an asset with a wrong digit',
      BASE,
      `${EVM_KEY}\nasset = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02914"`,
      'asset',
      'address of a token',
    ],
    [
      'of a facilitator with a password',
      BASE,
      `${EVM_KEY}\nfacilitator = "https://u:p@f.example"`,
      'facilitator',
      'x402 facilitator',
    ],
    ['of what is no facilitator', BASE, `${EVM_KEY}\nfacilitator = "mine"`, 'facilitator', 'x402 facilitator'],
    ['of a least payment above the most', BASE, `${EVM_KEY}\nmin_topup = 5\ntopup_max = 4`, 'min_topup', 'topup_max'],
    [
      'of a least withdrawal above the most',
      BASE,
      `${EVM_KEY}\nwithdrawal_daily_max = 0.5`,
      'withdrawal_min',
      'withdrawal_daily_max',
    ],
    [
      'of a fee of token accounts on an EVM chain',
      BASE,
      `${EVM_KEY}\ntoken_account_fee = 0.5`,
      'token_account_fee',
      'leave it out',
    ],
    [
      'of a fee of token accounts that nobody opens',
      SOLANA,
      `${SOLANA_KEY}\ntoken_account_fee = 0.5`,
      'token_account_fee',
      'opens_accounts = true',
    ],
    ['of an amount finer than money is', BASE, `${EVM_KEY}\nmin_topup = 0.0000001`, 'min_topup', 'USD'],
    ['of a negative amount', BASE, `${EVM_KEY}\nunfinal_max = -1`, 'unfinal_max', 'USD'],
    ['of no block at all', BASE, `${EVM_KEY}\nfinality = 0`, 'finality', '1 to 100000'],
    ['of payments without a treasury', BASE, 'min_topup = 1', 'min_topup', 'private_key or keypair_file'],
    ['of an option that does not exist', BASE, `${EVM_KEY}\nmin_top_up = 1`, 'min_top_up', 'min_topup'],
  ])('a block complains %s', (_what, network, more, key, right) => {
    const problems = problemsOf(chain(network, URL, more));
    expect(problems).toMatchObject([{ key: `chains[0].${key}`, right: expect.stringContaining(right) }]);
    expect(JSON.stringify(problems)).not.toMatch(/canary7f3a|0123456789abcdef|5555/);
  });

  test('an asset of its own needs its whole domain', () => {
    expect(problemsOf(chain(OTHER, URL, `${EVM_KEY}\n${TOKEN}`))).toMatchObject([
      { key: 'chains[0].asset_name' },
      { key: 'chains[0].asset_version' },
    ]);
    expect(problemsOf(chain(BASE, URL, `${EVM_KEY}\n${TOKEN}`))).toHaveLength(2);
  });
});
