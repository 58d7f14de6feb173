import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { recoverMessageAddress } from 'viem';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import { evmWallet, solanaWallet } from '../../support/wallets.ts';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

const solana = solanaWallet();
const evm = evmWallet();

let place: Place;
beforeEach(async () => {
  place = await makePlace();
  await writeFile(join(place.dir, 'solana.json'), JSON.stringify([...solana.secret]), { mode: 0o600 });
  await writeFile(join(place.dir, 'evm.hex'), `0x${Buffer.from(evm.secret).toString('hex')}\n`, { mode: 0o600 });
});
afterEach(() => place.clear());

const SOLANA = ['--keypair', 'solana.json', '--chain-id', 'solana:mainnet'];
const EVM = ['--keypair', 'evm.hex', '--chain-id', 'eip155:8453'];

async function header(args: readonly string[], env?: NodeJS.ProcessEnv) {
  const { code, stdout: output } = await place.run(['siwx', ...args], env);
  expect(code).toBe(0);
  expect(output).toMatch(/^[A-Za-z0-9+/]+={0,2}\n$/);
  const { message, signature } = JSON.parse(Buffer.from(output, 'base64').toString('utf8')) as {
    message: string;
    signature: string;
  };
  return { message, signature, line: (label: string) => new RegExp(`^${label}: (.*)$`, 'm').exec(message)?.[1] };
}

/** Who a gateway takes the header for, and the domain that it was made for. */
async function signIn(args: readonly string[], base: string): Promise<{ account: string; domain: string }> {
  const { stdout: output } = await place.run(['siwx', ...args]);
  const response = await fetch(`${base}/api/v1/session/balance`, { headers: { 'sign-in-with-x': output.trim() } });
  const { caip_account_id: account } = (await response.json()) as { caip_account_id: string };
  const { message } = JSON.parse(Buffer.from(output, 'base64').toString('utf8')) as { message: string };
  return { account, domain: message.split(' ')[0]! };
}

describe('tollgate siwx', () => {
  it('prints a signed header of a Solana wallet, and nothing else', async () => {
    const before = Date.now();
    const { message, signature, line } = await header([...SOLANA, '--domain', 'gateway.example']);
    expect(
      message.startsWith(`gateway.example wants you to sign in with your Solana account:\n${solana.address}\n\nURI: `),
    ).toBe(true);
    expect(nacl.sign.detached.verify(Buffer.from(message), bs58.decode(signature), bs58.decode(solana.address))).toBe(
      true,
    );
    expect(line('URI')).toBe('https://gateway.example');
    expect(line('Chain ID')).toBe('solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp');
    expect(line('Nonce')).toBeUndefined();
    const issued = Date.parse(line('Issued At')!);
    expect(issued).toBeGreaterThanOrEqual(before);
    expect(issued).toBeLessThanOrEqual(Date.now());
    expect(Date.parse(line('Expiration Time')!) - issued).toBe(15 * 60_000);
  });

  it('prints one of an EVM wallet, with all that can be said', async () => {
    const said = [
      '--domain',
      '127.0.0.1:8402',
      '--uri',
      'http://127.0.0.1:8402/api',
      '--nonce',
      'aB3456789',
      '--lifetime',
      '90s',
      '--statement',
      'For tests.',
    ];
    const { message, signature, line } = await header([...EVM, ...said]);
    expect(
      message.startsWith(
        `127.0.0.1:8402 wants you to sign in with your Ethereum account:\n${evm.address}\n\nFor tests.\n\nURI: `,
      ),
    ).toBe(true);
    expect(await recoverMessageAddress({ message, signature: signature as `0x${string}` })).toBe(evm.address);
    expect([line('URI'), line('Chain ID'), line('Nonce')]).toEqual([
      'http://127.0.0.1:8402/api',
      'eip155:8453',
      'aB3456789',
    ]);
    expect(Date.parse(line('Expiration Time')!) - Date.parse(line('Issued At')!)).toBe(90_000);
  });

  it('takes an address for its host, and the host of --uri where no domain is given', async () => {
    const cases: [args: string[], domain: string, uri: string][] = [
      [['--domain', 'http://LocalHost:8402/'], 'localhost:8402', 'http://localhost:8402'],
      [['--domain', 'Gateway.Example:443'], 'gateway.example', 'https://gateway.example'],
      [['--uri', 'https://gateway.example:9/api'], 'gateway.example:9', 'https://gateway.example:9/api'],
      [['--domain', '[::1]:8402'], '[::1]:8402', 'https://[::1]:8402'],
    ];
    for (const [args, domain, uri] of cases) {
      const { message, line } = await header([...SOLANA, ...args]);
      expect.soft(message.split(' ')[0]).toBe(domain);
      expect.soft(line('URI')).toBe(uri);
    }
  });

  it('signs in at the gateway that runs on the data directory, for a domain that it takes', async () => {
    await place.gateway(['serve'], { TOLLGATE_SIGN_IN_DOMAINS: 'gateway.example' });
    const { base_url } = await place.read('gateway.json');
    for (const [wallet, args] of [
      [solana, SOLANA],
      [evm, EVM],
    ] as const) {
      const value = await signIn(args, base_url!);
      expect(value.account.toLowerCase()).toBe(wallet.accountId.toLowerCase());
      expect(value.domain).toBe('gateway.example');
    }
    const { nonce } = (await (await fetch(`${base_url}/api/v1/auth/nonce`)).json()) as { nonce: string };
    const { stdout: output } = await place.run(['siwx', ...SOLANA, '--nonce', nonce]);
    const made = await fetch(`${base_url}/api/v1/keys`, {
      method: 'POST',
      headers: { 'sign-in-with-x': output.trim(), 'content-type': 'application/json' },
      body: '{}',
    });
    expect(made.status).toBe(201);
  });

  it('signs in at a development gateway as it is', async () => {
    const port = await findFreePort();
    await place.gateway(['start'], { PORT: String(port) });
    const { base_url } = await place.read('gateway.json');
    expect(await signIn(SOLANA, base_url!)).toEqual({ account: solana.accountId, domain: `127.0.0.1:${port}` });
  });

  it('says when the gateway takes no sign-ins', async () => {
    await place.gateway(['serve']);
    expect(await place.run(['siwx', ...SOLANA])).toMatchObject({
      code: 1,
      output: expect.stringContaining('TOLLGATE_SIGN_IN_DOMAINS'),
    });
  });

  it('says what is wrong, in words that tell what to do', async () => {
    await writeFile(join(place.dir, 'open.json'), JSON.stringify([...solana.secret]));
    await chmod(join(place.dir, 'open.json'), 0o644);
    const at = ['--domain', 'gateway.example'];
    const cases: [args: string[], code: number, says: string][] = [
      [SOLANA, 1, 'No gateway runs on the data directory'],
      [[...SOLANA, '--domain', 'gateway example'], 1, '--domain is the host of a gateway'],
      [[...SOLANA, '--domain', ''], 1, '--domain is the host of a gateway'],
      [[...SOLANA, '--uri', 'gateway'], 1, '--uri is the address of a gateway'],
      [[...SOLANA, ...at, '--lifetime', '15'], 1, '--lifetime is a duration, such as 90s, 15m or 1h'],
      [[...SOLANA, ...at, '--lifetime', '0m'], 1, '--lifetime is a duration'],
      [[...SOLANA, ...at, '--lifetime', '25h'], 1, 'longer than any gateway accepts'],
      [[...SOLANA, ...at, '--statement', 'two\nlines'], 1, 'one line'],
      [[...SOLANA, ...at, '--nonce', 'a b'], 1, 'The nonce'],
      [['--keypair', 'none.json', '--chain-id', 'solana:mainnet', ...at], 1, `node ${LAUNCHER} keygen --chain`],
      [['--keypair', 'open.json', '--chain-id', 'solana:mainnet', ...at], 1, 'chmod 600 open.json'],
      [['--keypair', 'evm.hex', '--chain-id', 'solana:mainnet', ...at], 1, 'is one of EVM'],
      [['--keypair', 'solana.json', '--chain-id', 'eip155:8453', ...at], 1, 'is one of Solana'],
      [['--keypair', 'solana.json', '--chain-id', 'base', ...at], 1, 'Give it as CAIP-2'],
      [['--keypair', 'solana.json', ...at], 2, '--chain-id'],
      [['--chain-id', 'solana:mainnet', ...at], 2, '--keypair'],
      [['--help'], 0, 'curl -H "SIGN-IN-WITH-X: $(tollgate siwx'],
    ];
    for (const [args, code, says] of cases) {
      const result = await place.run(['siwx', ...args]);
      expect.soft(result, args.join(' ')).toMatchObject({ code, output: expect.stringContaining(says) });
      expect.soft(result.output, args.join(' ')).not.toContain('    at ');
    }
  });
});
