import { describe, expect, it } from 'vitest';
import bs58 from 'bs58';
import { createSiweMessage } from 'viem/siwe';
import { parseMessage } from '../../../../src/gateway/auth/siwx/message.ts';
import { DOMAIN, evmWallet, fieldsFor, iso, solanaWallet, START, textOf, type Fields } from './wallets.ts';

const solana = solanaWallet();
const evm = evmWallet();
const unauthorized = { code: 'unauthorized', headers: { 'www-authenticate': 'SIWx, Bearer' } };

/** What is wrong with a text; null when nothing is. */
function faultOf(text: string): string | null {
  try {
    parseMessage(text);
    return null;
  } catch (error) {
    expect(error).toMatchObject(unauthorized);
    return (error as Error).message;
  }
}

const full: Partial<Fields> = {
  nonce: 'abcDEF12',
  notBefore: iso(START - 1),
  requestId: 'request-1',
  resources: ['https://gateway.example/a?b=c#d', 'ipfs://bafy/'],
};

describe('the sign-in message', () => {
  it('is read with all its fields', () => {
    expect(parseMessage(textOf(fieldsFor(solana, full)))).toEqual({
      namespace: 'solana',
      domain: DOMAIN,
      address: solana.address,
      uri: `https://${DOMAIN}/api/v1`,
      network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      nonce: 'abcDEF12',
      issuedAt: START,
      expirationTime: START + 600_000,
      notBefore: START - 1,
    });
  });

  it('is read with no more than it must have', () => {
    const text = textOf(fieldsFor(evm, { statement: null, issuedAt: null, expirationTime: null }));
    expect(parseMessage(text)).toMatchObject({
      address: evm.address.toLowerCase(),
      nonce: null,
      issuedAt: null,
      expirationTime: null,
      notBefore: null,
    });
  });

  it('is read as viem writes it, with a statement and without', () => {
    const message = {
      address: evm.address as `0x${string}`,
      chainId: 8453,
      domain: DOMAIN,
      nonce: 'abcdef1234',
      uri: 'https://gateway.example/',
      version: '1',
    } as const;
    for (const statement of [undefined, 'Sign in, please.', 'URI: is what I say']) {
      const text = createSiweMessage({
        ...message,
        ...(statement ? { statement } : {}),
        issuedAt: new Date(START),
        resources: ['https://gateway.example/x'],
      });
      if (statement?.startsWith('URI')) expect(faultOf(text)).toContain('URI');
      else expect(parseMessage(text)).toMatchObject({ network: 'eip155:8453', issuedAt: START });
    }
  });

  it.each([
    [solana, '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
    [solana, 'mainnet', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
    [solana, 'devnet', 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'],
    [solana, 'testnet', 'solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z'],
    [solana, 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1'],
    [evm, '1', 'eip155:1'],
    [evm, 'eip155:84532', 'eip155:84532'],
  ])('knows the chain %#', (wallet, chainId, network) => {
    expect(parseMessage(textOf(fieldsFor(wallet, { chainId }))).network).toBe(network);
  });

  it.each([
    '',
    '0',
    '01',
    '-1',
    '1.5',
    '0x1',
    'eip155:',
    'eip155:0',
    'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    'mainnet',
    '1 ',
    ' 1',
    '１',
    '9'.repeat(33),
  ])('refuses %j as a chain of EVM', (chainId) =>
    expect(faultOf(textOf(fieldsFor(evm, { chainId })))).toContain('Chain ID'),
  );

  it.each([
    '',
    'constructor',
    '__proto__',
    'eip155:1',
    'localnet',
    '5eykt4UsFv8P8NJdTREpY1vzqKqZKvd',
    'Mainnet',
    'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:x',
  ])('refuses %j as a chain of Solana', (chainId) =>
    expect(faultOf(textOf(fieldsFor(solana, { chainId })))).toContain('Chain ID'),
  );

  it('takes an EVM address in lower case or with its checksum, and no other', () => {
    const wrong = evm.address.replace(/[a-f]/, (letter) => letter.toUpperCase());
    expect(faultOf(textOf(fieldsFor(evm, { address: evm.address.toLowerCase() })))).toBeNull();
    for (const address of [
      wrong,
      `0x${evm.address.slice(2).toUpperCase()}`,
      evm.address.replace('0x', '0X'),
      evm.address.slice(2),
      `${evm.address}0`,
      solana.address,
      '',
    ]) {
      expect(faultOf(textOf(fieldsFor(evm, { address })))).toContain('EVM address');
    }
  });

  it('takes a Solana address of 32 bytes, and no other', () => {
    const bytes = (length: number) => bs58.encode(Buffer.alloc(length, 7));
    for (const address of [
      bytes(31),
      bytes(33),
      `${solana.address}1`,
      `1${solana.address}`,
      evm.address,
      '',
      'O'.repeat(43),
      '1'.repeat(5_000),
    ]) {
      expect(faultOf(textOf(fieldsFor(solana, { address })))).toContain('Solana address');
    }
  });

  it('misses every line that must be there, and finds every line that is there twice', () => {
    const lines = textOf(fieldsFor(solana, full)).split('\n');
    const optional = /^Sign in\.$|^(?:Nonce|Issued At|Expiration Time|Not Before|Request ID): |^Resources:$|^- /;
    for (const [index, line] of lines.entries()) {
      const without = lines.toSpliced(index, 1).join('\n');
      if (!optional.test(line)) expect(faultOf(without), `without ${line}`).not.toBeNull();
      if (line === 'Resources:') expect(faultOf(without)).toContain('unknown, doubled');
      const twice = lines.toSpliced(index, 0, line).join('\n');
      if (!line.startsWith('- ')) expect(faultOf(twice), `twice ${line}`).not.toBeNull();
    }
  });

  it('has its lines in one order only', () => {
    const lines = textOf(fieldsFor(solana, full)).split('\n');
    for (let index = 0; index + 1 < lines.length; index += 1) {
      if (lines[index]!.startsWith('- ')) continue;
      const swapped = lines
        .with(index, lines[index + 1]!)
        .with(index + 1, lines[index]!)
        .join('\n');
      expect(faultOf(swapped), `${lines[index]} after ${lines[index + 1]}`).not.toBeNull();
    }
  });

  it('has no line that is not known, wherever it stands', () => {
    const lines = textOf(fieldsFor(solana, full)).split('\n');
    for (const extra of [
      'Foo: bar',
      'uri: https://gateway.example/',
      'URI:https://gateway.example/',
      ' ',
      '- https://gateway.example/',
      'Chain ID : 1',
      'Nonce: 99999999',
    ]) {
      for (let index = 0; index <= lines.length; index += 1) {
        if (extra.startsWith('- ') && lines[index - 1]?.startsWith('- ')) continue;
        if (extra.startsWith('- ') && lines[index - 1] === 'Resources:') continue;
        expect(faultOf(lines.toSpliced(index, 0, extra).join('\n')), `${extra} at ${index}`).not.toBeNull();
      }
    }
  });

  it('holds no character that a wallet shows as something else, or as nothing', () => {
    const text = textOf(fieldsFor(solana));
    for (const character of [
      '\r',
      '\t',
      '\0',
      '\u001b',
      '\u007f',
      '\u0085',
      '\u200b',
      '\u202e',
      '\u2028',
      '\u2066',
      '\ufeff',
      '\ud800',
    ]) {
      for (const at of [0, 5, text.indexOf('\n'), text.indexOf('Sign in.') + 3, text.length]) {
        expect(
          faultOf(text.slice(0, at) + character + text.slice(at)),
          `${character.codePointAt(0)!.toString(16)} at ${at}`,
        ).not.toBeNull();
      }
    }
    expect(faultOf(text.replaceAll('\n', '\r\n'))).toContain('control');
  });

  it('may have a statement in any language, and only on one line with a blank line after it', () => {
    const lines = textOf(fieldsFor(solana)).split('\n');
    expect(lines[4]).toBe('');
    for (const other of ['more', ' ', 'URI: https://gateway.example/'])
      expect(faultOf(lines.with(4, other).join('\n'))).not.toBeNull();
    expect(faultOf(textOf(fieldsFor(solana, { statement: 'Anmelden für 日本語' })))).toBeNull();
    for (const statement of ['two\nlines', 'URI: https://gateway.example/', ''])
      expect(faultOf(textOf(fieldsFor(solana, { statement })))).not.toBeNull();
  });

  it.each([
    'gateway.example wants you to sign in with your Bitcoin account:',
    'gateway.example wants you to sign in with your Solana account',
    'gateway.example wants you to sign in with your solana account:',
    'gateway.example  wants you to sign in with your Solana account:',
    ' wants you to sign in with your Solana account:',
    ' gateway.example wants you to sign in with your Solana account:',
    'gateway.example evil.example wants you to sign in with your Solana account:',
    'gatewаy.example wants you to sign in with your Solana account:',
    `${'a'.repeat(256)} wants you to sign in with your Solana account:`,
    '',
  ])('refuses the first line %#', (first) => {
    expect(faultOf([first, ...textOf(fieldsFor(solana)).split('\n').slice(1)].join('\n'))).not.toBeNull();
  });

  it.each(['short12', 'with space', 'dash-dash-dash', 'ünïcödé1', ''])('refuses the nonce %j', (nonce) => {
    expect(faultOf(textOf(fieldsFor(solana, { nonce })))).toContain('nonce');
  });

  it.each(['2', '1.0', '01', ''])('refuses the version %j', (version) => {
    expect(faultOf(textOf(fieldsFor(solana, { version })))).toContain('Version');
  });

  it.each([
    '',
    'gateway.example',
    '/path',
    'https://gateway.example/a b',
    'https://gatewаy.example/',
    'https:\\\\gateway.example\\',
    'https://gateway.example/\u00e9',
    'https://gateway.example/"<>',
  ])('refuses the URI %j', (uri) => expect(faultOf(textOf(fieldsFor(solana, { uri })))).toContain('URI'));
});
