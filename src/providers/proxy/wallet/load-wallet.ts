import { constants, type Stats } from 'node:fs';
import { access, open, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isKey } from '#config';
import {
  parseChainId,
  evmWallet,
  parseBase58Keypair,
  parseByteArray,
  parseEvmSecret,
  solanaWallet,
  WalletError,
  type Wallet,
} from './wallet.ts';

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

const FILE_BYTES_MAX = 64 * 1024;

/**
 * Reads the text of a keypair file. It must be a regular file of at most 64 KiB that only its owner can read. Mounted
 * secrets are accepted too, see isPrivate. `program` is how this program was called, for the command that makes a
 * missing file. Rejects with WalletError.
 */
export async function readKeypairFile(path: string, program: string): Promise<string> {
  const file = await openToRead(path, program);
  try {
    const stats = await file.stat();
    if (!stats.isFile())
      throw new WalletError(
        `The keypair file ${path} is not a regular file. Name the file that the command keygen wrote`,
      );
    await refuseReadable(path, stats);
    // The file's size isn't trusted: a file may grow, and some file systems report size 0.
    const bytes = Buffer.alloc(FILE_BYTES_MAX + 1);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > FILE_BYTES_MAX)
      throw new WalletError(
        `The keypair file ${path} is larger than ${FILE_BYTES_MAX} bytes, so it is not a keypair file`,
      );
    return bytes.toString('utf8', 0, length);
  } finally {
    await file.close();
  }
}

async function openToRead(path: string, program: string): Promise<FileHandle> {
  try {
    // O_NONBLOCK, because opening a named pipe would block.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WalletError(
      code === 'ENOENT'
        ? `The keypair file ${path} does not exist. Make one: ${program} keygen --chain solana|evm --out ${path}`
        : `The keypair file ${path} cannot be read (${code}). Make it readable for the user that runs this, and for nobody else`,
    );
  }
}

/** Windows has no such file modes. */
async function refuseReadable(path: string, stats: Stats): Promise<void> {
  if (process.platform === 'win32') return;
  const reader = process.geteuid!();
  const fixed = await isOnReadOnlyMount(path);
  if (isPrivate(stats, reader, fixed)) return;
  if (fixed)
    throw new WalletError(
      `The keypair file ${path} has mode ${octal(stats.mode)}. On a read-only mount it may be readable, and neither writable nor executable for group and others. Mount it with mode 0440 or 0400 (Kubernetes: defaultMode; Docker: mode)`,
    );
  // If the file belongs to another user, chmod alone would lock out the user who runs this program.
  const right =
    stats.uid === reader || reader === 0
      ? `Run: chmod 600 ${path}`
      : 'Make it a file of the user that runs this, with mode 600';
  throw new WalletError(
    `The keypair file ${path} can be read or written by other users, and everybody who can read the file can use the wallet. ${right}`,
  );
}

/**
 * Tells whether a process of the user `reader` may use a key from this file. A file that only its owner can read is
 * accepted. A secret that an orchestrator mounts is accepted too: a file of root that nobody may write and a group may
 * read. On a read-only mount others may read it as well, because modes can't be changed there.
 */
export function isPrivate({ mode, uid }: Pick<Stats, 'mode' | 'uid'>, reader: number, readOnlyMount: boolean): boolean {
  return (
    (mode & 0o077) === 0 ||
    (readOnlyMount && (mode & 0o033) === 0) ||
    (uid === 0 && reader !== 0 && (mode & 0o337) === 0)
  );
}

/** Root may write to any file, except on a read-only mount. */
async function isOnReadOnlyMount(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}

const octal = (mode: number) => (mode & 0o777).toString(8).padStart(4, '0');

/**
 * Writes a new keypair file, durably. From the first byte on, only its owner can read it. Doesn't touch an existing
 * file. Rejects with WalletError.
 */
export async function writeKeypairFile(path: string, text: string): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    throw new WalletError(explainWrite(path, (error as NodeJS.ErrnoException).code));
  }
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    // A partial key is useless.
    await rm(path, { force: true });
    throw new WalletError(explainWrite(path, (error as NodeJS.ErrnoException).code));
  } finally {
    await file.close();
  }
  await syncDirectory(dirname(path));
}

function explainWrite(path: string, code: string | undefined): string {
  if (code === 'EEXIST')
    return `${path} already exists and may hold a wallet, so nothing was written. Choose another name, or move the file away`;
  if (code === 'ENOENT') return `The directory ${dirname(path)} does not exist. Make it: mkdir -p ${dirname(path)}`;
  return `${path} cannot be written (${code}). Choose a place that can be`;
}

/** A new file's name is durable only after its directory is synced. Windows can't sync a directory. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
