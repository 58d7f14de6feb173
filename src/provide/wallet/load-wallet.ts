import { parseChainId } from './chain-id.ts';
import { readKeypairFile } from './keypair-file.ts';
import { evmWallet, parseBase58Keypair, parseByteArray, parseEvmSecret, solanaWallet } from './wallet-keys.ts';
import { WalletError, type Wallet } from './wallet.ts';

/**
 * Where a wallet comes from: a keypair file (Solana: a JSON array of 64 numbers, or the same bytes in base58; EVM: 0x-hex), or the secret
 * itself (base58, or hex with or without 0x). `chainId` is CAIP-2; of Solana also `solana:mainnet|devnet|testnet`.
 */
export type WalletSource = { readonly chainId: string; readonly keypairFile: string } | { readonly chainId: string; readonly privateKey: string };

const FORMS = {
  solana: 'a JSON array of 64 numbers, as solana-keygen and tollgate keygen --chain solana write it, or the same 64 bytes in base58',
  eip155: '32 bytes in hex, as tollgate keygen --chain evm writes them',
};

/** Reads a wallet's key and checks it. Rejects with WalletError, whose message shows nothing of the key. */
export async function loadWallet(source: WalletSource): Promise<Wallet> {
  const { namespace, chainId } = parseChainId(source.chainId);
  if ('keypairFile' in source && isKey(source.keypairFile)) {
    // Not to be repeated as the name of a file that does not exist.
    throw new WalletError(
      'The keypair file is given as a key itself. Give the path of a file that holds it; a configuration also takes it as private_key',
    );
  }
  const what = 'keypairFile' in source ? `The keypair file ${source.keypairFile}` : 'The private key';
  const content = ('keypairFile' in source ? await readKeypairFile(source.keypairFile) : source.privateKey).trim();
  const value = parseJson(content);
  const text = typeof value === 'string' ? value.trim() : content;

  if (namespace === 'eip155') {
    const secret = parseEvmSecret(text, what);
    if (secret) return evmWallet(chainId, secret);
  } else {
    const keypair = parseByteArray(value) ?? parseBase58Keypair(text);
    if (keypair) return solanaWallet(chainId, keypair, what);
  }
  const other = namespace === 'eip155' ? parseByteArray(value) !== null || parseBase58Keypair(text) !== null : /^(?:0x)?[0-9a-fA-F]{64}$/.test(text);
  throw new WalletError(
    other
      ? `${what} is one of ${namespace === 'eip155' ? 'Solana' : 'EVM'}, but the chain id ${chainId} is not. Give the chain of this wallet, or the wallet of this chain`
      : `${what} holds no key of the chain ${chainId}. What it should hold: ${FORMS[namespace]}`,
  );
}

/** Whether a text that should be a path is the secret that belongs into the file. */
export function isKey(path: string): boolean {
  const text = path.trim();
  return /^(?:0x)?[0-9a-fA-F]{64}$/.test(text) || /^[1-9A-HJ-NP-Za-km-z]{80,90}$/.test(text) || /^\[[\d\s,]+\]?$/.test(text);
}

/** undefined for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
