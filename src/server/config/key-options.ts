import { option, type Option } from './option.ts';
import { show, WrongValue } from './problem.ts';

const SECRET_MAX = 1_024;
const PATH_MAX = 4_096;
const KEYPAIR_RIGHT = 'the path of the file that the command `keygen` wrote';

/** An option for the path of a wallet's key file. null if it is absent. */
export function keypairFileOption(meaning: string): Option<string | null> {
  return option<string | null>({
    takes: 'path of a file that its owner alone can read',
    meaning: `${meaning} A relative path starts at the directory of the file. Give this or \`private_key\`.`,
    optional: { text: 'none', fallback: null },
    read: (value) => {
      if (typeof value !== 'string') throw new WrongValue(`is ${show(value)}`, KEYPAIR_RIGHT);
      if (isKey(value))
        throw new WrongValue('is a key itself', `${KEYPAIR_RIGHT}. Put the key itself into private_key`);
      if (value === '' || value.length > PATH_MAX || value.includes('\0'))
        throw new WrongValue('is not a path', KEYPAIR_RIGHT);
      if (value.startsWith('~'))
        throw new WrongValue(
          'begins with ~, which only shells know',
          'the whole path, or one that starts at the directory of this file',
        );
      return value;
    },
  });
}

/** An option for a wallet's key itself, which is never shown. null if it is absent. */
export function privateKeyOption(meaning: string): Option<string | null> {
  return option<string | null>({
    takes: 'hex of an EVM key, base58 of a Solana key pair, or `std::env::NAME`',
    meaning,
    secret: true,
    optional: { text: 'none', fallback: null },
    read: (value) => {
      const right = '"std::env::NAME", or the key as hex (EVM) or base58 (Solana)';
      if (typeof value !== 'string') throw new WrongValue('is not text', right);
      if (value.trim() === '' || value.length > SECRET_MAX) throw new WrongValue('is not a key', right);
      return value.trim();
    },
  });
}

const EVM_KEY = /^(?:0x)?[0-9a-fA-F]{64}$/;
const SOLANA_KEYPAIR = /^[1-9A-HJ-NP-Za-km-z]{80,90}$|^\[[\d\s,]+\]?$/;

/** Whether a text that should be a path is the secret key itself. */
export function isKey(text: string): boolean {
  return keyFamily(text) !== null;
}

/** The chain family of a secret key, by its format. null for a text that is not a key. */
export function keyFamily(text: string): 'eip155' | 'solana' | null {
  const trimmed = text.trim();
  if (EVM_KEY.test(trimmed)) return 'eip155';
  return SOLANA_KEYPAIR.test(trimmed) ? 'solana' : null;
}
