import { isKey } from '#config';
import { parseChainId } from './chain-id.ts';
import { readKeypairFile } from './keypair-file.ts';
import { evmWallet, parseBase58Keypair, parseByteArray, parseEvmSecret, solanaWallet } from './wallet-keys.ts';
import { WalletError, type Wallet } from './wallet.ts';

/**
 * The source of a wallet: a keypair file (Solana: a JSON array of 64 numbers, or the same bytes in base58; EVM:
 * 0x-hex), or the secret itself (base58, or hex with or without 0x). `chainId` is CAIP-2, or
 * `solana:mainnet|devnet|testnet`.
 */
type WalletSource =
  | { readonly chainId: string; readonly keypairFile: string }
  | { readonly chainId: string; readonly privateKey: string };

const FORMS = {
  solana:
    'a JSON array of 64 numbers, as solana-keygen and the command keygen --chain solana write it, or the same 64 bytes in base58',
  eip155: '32 bytes in hex, as the command keygen --chain evm writes them',
};

/**
 * Reads and checks a wallet's key. `program` is how this program was called, for commands in messages. Rejects with
 * WalletError, whose message never contains the key.
 */
export async function loadWallet(source: WalletSource, program = 'tollgate'): Promise<Wallet> {
  const { chainId, what, key } = await readKey(source, program);
  return typeof key === 'string' ? evmWallet(chainId, key) : solanaWallet(chainId, key, what);
}

/**
 * Returns the secret's bytes, for callers that sign more than texts: 32 bytes for EVM, the 64 of the key pair for
 * Solana. Rejects with WalletError.
 */
export async function loadSecret(source: WalletSource, program = 'tollgate'): Promise<Uint8Array> {
  const { chainId, what, key } = await readKey(source, program);
  if (typeof key === 'string') return Buffer.from(key.slice(2), 'hex');
  // Called only because it checks that the two halves belong together.
  solanaWallet(chainId, key, what);
  return key;
}

/** `what` names the source in messages. `key` is 0x-hex for EVM, or the bytes of a Solana key pair. */
async function readKey(
  source: WalletSource,
  program: string,
): Promise<{ readonly chainId: string; readonly what: string; readonly key: `0x${string}` | Uint8Array }> {
  const { namespace, chainId } = parseChainId(source.chainId);
  if ('keypairFile' in source && isKey(source.keypairFile)) {
    // The text may be a key, so the message must not repeat it as a file name.
    throw new WalletError(
      'The keypair file is given as a key itself. Give the path of a file that holds it; a configuration also takes it as private_key',
    );
  }
  const what = 'keypairFile' in source ? `The keypair file ${source.keypairFile}` : 'The private key';
  const content = (
    'keypairFile' in source ? await readKeypairFile(source.keypairFile, program) : source.privateKey
  ).trim();
  const value = parseJson(content);
  const text = typeof value === 'string' ? value.trim() : content;

  const key = namespace === 'eip155' ? parseEvmSecret(text, what) : (parseByteArray(value) ?? parseBase58Keypair(text));
  if (key) return { chainId, what, key };
  const other =
    namespace === 'eip155'
      ? parseByteArray(value) !== null || parseBase58Keypair(text) !== null
      : /^(?:0x)?[0-9a-fA-F]{64}$/.test(text);
  throw new WalletError(
    other
      ? `${what} is one of ${namespace === 'eip155' ? 'Solana' : 'EVM'}, but the chain id ${chainId} is not. Give the chain of this wallet, or the wallet of this chain`
      : `${what} holds no key of the chain ${chainId}. What it should hold: ${FORMS[namespace]}`,
  );
}

/** Returns undefined if the text isn't JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
