import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { localAccount, parseAccountId, toCaip10 } from '../../../src/server/accounts/account-id.ts';
import { anyCharacter } from '../../support/any-character.ts';

const EVM = '0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B';
const SOLANA = 'So11111111111111111111111111111111111111112';
const GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';

describe('account ids', () => {
  it.each([
    ['tollgate:local:dev', 'tollgate:local:dev', 'tollgate:local:dev'],
    [`eip155:1:${EVM}`, `eip155:${EVM.toLowerCase()}`, `eip155:8453:${EVM.toLowerCase()}`],
    [`eip155:${EVM}`, `eip155:${EVM.toLowerCase()}`, `eip155:8453:${EVM.toLowerCase()}`],
    [`solana:${GENESIS}:${SOLANA}`, `solana:${SOLANA}`, `solana:${GENESIS}:${SOLANA}`],
    [`solana:${SOLANA}`, `solana:${SOLANA}`, `solana:${GENESIS}:${SOLANA}`],
  ])('%s is one account, however it is written', (text, ledger, caip) => {
    expect(parseAccountId(text)).toBe(ledger);
    expect(toCaip10(ledger, [])).toBe(caip);
    expect(parseAccountId(caip)).toBe(ledger);
  });

  it('of contract wallets stay on their chain', () => {
    const id = `eip155:10:${EVM.toLowerCase()}`;
    expect(toCaip10(id, ['eip155:84532'])).toBe(id);
  });

  it('of ordinary wallets are shown on the first chain of the gateway that is of their family', () => {
    const networks = ['solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1', 'eip155:84532', 'eip155:8453'];
    expect(toCaip10(`eip155:${EVM.toLowerCase()}`, networks)).toBe(`eip155:84532:${EVM.toLowerCase()}`);
    expect(toCaip10(`solana:${SOLANA}`, networks)).toBe(`solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1:${SOLANA}`);
    expect(toCaip10(`solana:${SOLANA}`, ['eip155:84532'])).toBe(`solana:${GENESIS}:${SOLANA}`);
  });

  it.each([
    '',
    'dev',
    'tollgate:local:',
    'tollgate:local:Dev',
    'tollgate:local:a/b',
    'eip155:8453:0x12',
    // One digit of the checksummed address is another.
    `eip155:8453:${EVM.replace('Ab5', 'Ab4')}`,
    `eip155:x:${EVM}`,
    `eip155:8453:${EVM}0`,
    'solana:abc',
    `solana:short:${SOLANA}`,
    `solana:${'1'.repeat(44)}`,
    'escrow:tollgate:local:dev',
    'treasury:operator',
    `tollgate:local:${'a'.repeat(65)}`,
    `eip155:${'1'.repeat(100_000)}:${EVM}`,
  ])('refuses %j', (text) => {
    expect(parseAccountId(text)).toBeNull();
  });

  it('survive anything', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: anyCharacter }),
          fc
            .tuple(fc.constantFrom('eip155:', 'solana:', 'tollgate:local:'), fc.string())
            .map((parts) => parts.join('')),
        ),
        (text) => {
          const id = parseAccountId(text);
          if (id !== null) expect(parseAccountId(toCaip10(id, []))).toBe(id);
        },
      ),
    );
  });

  it('of local accounts are made of names with small letters, digits and hyphens', () => {
    expect(localAccount('ci-robot-7')).toBe('tollgate:local:ci-robot-7');
    for (const name of ['', 'A', 'a b', 'a'.repeat(65), '../x', 'ä', 'a:b', '__proto__']) {
      expect(() => localAccount(name)).toThrow(expect.objectContaining({ code: 'invalid_request', param: 'name' }));
    }
  });
});

describe('a contract wallet', () => {
  const address = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';

  it('is named by its chain, with contract: before it', () => {
    expect(parseAccountId(`contract:eip155:8453:${address}`)).toBe(`eip155:8453:${address}`);
    expect(parseAccountId(`contract:eip155:${address}`)).toBeNull();
    expect(parseAccountId(`contract:solana:${address}`)).toBeNull();
  });

  it('is not taken for an ordinary one, nor the other way round, where it can sign in', () => {
    expect(() => parseAccountId(`eip155:8453:${address}`, ['eip155:8453'])).toThrow(
      `contract:eip155:8453:${address} for the contract`,
    );
    expect(parseAccountId(`eip155:1:${address}`, ['eip155:8453'])).toBe(`eip155:${address}`);
    expect(parseAccountId(`eip155:${address}`, ['eip155:8453'])).toBe(`eip155:${address}`);
  });
});
