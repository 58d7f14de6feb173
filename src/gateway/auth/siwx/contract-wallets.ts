import { BOUNDS, dropOldest, fetchText, readForeign, Shares } from '#wire';
import { GatewayError } from '#errors';
import { networkLevels, networkOf } from '#security';
import type { ChainConfig } from '#config';

/**
 * Verifies signatures of wallets that are contracts. The contract's code decides whether a signature is valid
 * (EIP-1271), even before it is deployed (EIP-6492).
 */
export interface ContractWallets {
  /** Whether this gateway has a node of the chain. */
  knows(network: string): boolean;
  /** Adds further chains. */
  add(chains: ContractWalletsOptions['chains']): void;
  /**
   * Whether the contract at `address` on the chain `network` accepts the signature of `text`. False for an address
   * without code, because it is not a contract. Rejects with GatewayError `service_unavailable` if the node fails or
   * too many checks run, `rate_limit_exceeded` after too many checks.
   */
  verify(signature: ContractSignature): Promise<boolean>;
  /** Loads the library, so that no request waits for it. */
  load(): Promise<void>;
}

interface ContractSignature {
  readonly network: string;
  /** Lower case. */
  readonly address: string;
  readonly text: string;
  readonly signature: string;
  readonly client: string;
}

interface ContractWalletsOptions {
  readonly chains: readonly Pick<ChainConfig, 'network' | 'rpcUrl'>[];
  readonly now: () => number;
  /** Timeout of one request to a node. A sign-in makes two. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/**
 * Every check costs the operator two requests to its node. Checks are limited for each client and in total. They are
 * not limited for each wallet, because strangers could use up another wallet's quota.
 */
const CLIENT_PER_MINUTE = 60;
const ALL_PER_MINUTE = 600;
const RUNNING_MAX = 16;
/** The limit for a node's response. The longest is the code of a contract, at most 24 KiB. */
const ANSWER_BYTES_MAX = 1024 * 1024;

const HEX = /^0x(?:[0-9a-fA-F]{2})+$/;
const EIP_6492_SUFFIX = '6492'.repeat(16);
/**
 * Signatures with this suffix are refused. They name the contract that verifies them, through a delegation that may be
 * outdated, and a call that prepares it.
 */
const ERC_8010_SUFFIX = '8010'.repeat(16);
/** Error codes that mean that the contract reverted. Other errors say nothing about the signature. */
const REVERT_CODES: ReadonlySet<unknown> = new Set([3, -32000, -32015]);
const REVERT_WORDS = /revert|vm exec|invalid opcode|out of gas|stack underflow/i;

export function createContractWallets({
  chains,
  now,
  timeoutMs = TIMEOUT_MS,
}: ContractWalletsOptions): ContractWallets {
  const urls = new Map(chains.map(({ network, rpcUrl }) => [network, rpcUrl]));
  const clientQuota = createQuota({ perMinute: CLIENT_PER_MINUTE, now });
  const quota = createQuota({ perMinute: ALL_PER_MINUTE, now });
  const running = new Shares(RUNNING_MAX, RUNNING_MAX, networkLevels);

  return {
    knows: (network) => urls.has(network),

    add(more) {
      for (const { network, rpcUrl } of more) urls.set(network, rpcUrl);
    },

    async load() {
      await import('viem');
    },

    async verify({ network, address, text, signature, client }) {
      const url = urls.get(network);
      if (url === undefined || !HEX.test(signature) || signature.endsWith(ERC_8010_SUFFIX)) return false;
      const from = networkOf(client);
      const wait = clientQuota.take(from) || quota.take('');
      if (wait > 0) {
        throw new GatewayError(
          'rate_limit_exceeded',
          'Too many sign-ins of contract wallets: use one sign-in for many requests',
          {
            retryAfterS: wait / 1_000,
          },
        );
      }
      if (!running.mayTake(from)) throw unavailable(network);
      running.take(from);
      try {
        return await ask(url, network, { address: address as Hex, text, signature: signature as Hex }, timeoutMs);
      } finally {
        running.leave(from);
      }
    },
  };
}

type Hex = `0x${string}`;

async function ask(
  url: string,
  network: string,
  { address, text, signature }: { address: Hex; text: string; signature: Hex },
  timeoutMs: number,
): Promise<boolean> {
  const { createPublicClient, custom } = await import('viem');
  // viem reports a failed node as an invalid signature, so failures are recorded here.
  let failure: unknown = null;
  const request = async (call: { readonly method: string; readonly params?: unknown }): Promise<unknown> => {
    try {
      return await rpc(url, call, timeoutMs);
    } catch (error) {
      if (!(error instanceof Reverted)) failure = error;
      throw error;
    }
  };
  // No CCIP reads (off-chain lookups): the contract would choose a URL, and this gateway would fetch it.
  const client = createPublicClient({ transport: custom({ request }, { retryCount: 0 }), ccipRead: false });
  try {
    const code = await client.getCode({ address });
    // An address without code is an ordinary wallet, and its valid signature was recognised before. The validator would
    // also accept the malleated form of such a signature, so it is not asked.
    if ((code?.length ?? 0) <= '0x'.length && !signature.endsWith(EIP_6492_SUFFIX)) return false;
    if (await client.verifyMessage({ address, message: text, signature })) return true;
  } catch {
    // A failure of the node is reported below. Any other error means that the signature is malformed or that the
    // contract rejects it.
  }
  if (failure !== null) throw unavailable(network, failure);
  return false;
}

/** The node reports that the contract reverted. */
class Reverted extends Error {
  override readonly name = 'Reverted';
}

async function rpc(
  url: string,
  { method, params }: { readonly method: string; readonly params?: unknown },
  timeoutMs: number,
): Promise<unknown> {
  const { status, text } = await fetchText(url, {
    body: { jsonrpc: '2.0', id: 1, method, params },
    bytesMax: ANSWER_BYTES_MAX,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const answer = await readForeign(text, BOUNDS.chain);
  if (typeof answer !== 'object' || answer === null) throw new Error(`${method}: the node's answer is not JSON-RPC`);
  if ('error' in answer && answer.error) {
    const { code, message } = answer.error as { code?: unknown; message?: unknown };
    if (REVERT_CODES.has(code) || REVERT_WORDS.test(String(message))) throw new Reverted(String(message));
    throw new Error(`${method}: the node refuses (${String(code)})`);
  }
  if (status < 200 || status > 299 || !('result' in answer))
    throw new Error(`${method}: the node answers ${status} without a result`);
  return answer.result;
}

function unavailable(network: string, cause?: unknown): GatewayError {
  return new GatewayError(
    'service_unavailable',
    `The chain ${network} cannot be asked about this wallet at the moment: retry shortly`,
    {
      retryAfterS: 2,
      cause,
    },
  );
}

/** Limits how often something is done for each key. */
interface Quota {
  /** Takes one token and returns 0. Without a token, returns the milliseconds until the next one. */
  take(key: string): number;
}

/** The limit of tracked keys. Beyond it, the least recently used key is dropped. */
const KEYS_MAX = 10_000;
const MINUTE_MS = 60_000;

/** A token bucket for each key, stored as the time at which it will be full again. `now`: monotonic milliseconds. */
function createQuota({ perMinute, now }: { readonly perMinute: number; readonly now: () => number }): Quota {
  const fullAt = new Map<string, number>();
  const intervalMs = MINUTE_MS / perMinute;
  return {
    take(key) {
      const at = now();
      const next = Math.max(at, fullAt.get(key) ?? at) + intervalMs;
      if (next > at + MINUTE_MS) return next - at - MINUTE_MS;
      fullAt.delete(key);
      dropOldest(fullAt, KEYS_MAX - 1);
      fullAt.set(key, next);
      return 0;
    },
  };
}
