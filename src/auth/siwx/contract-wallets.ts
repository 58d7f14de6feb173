import { fetchText, GatewayError, networkOf } from '#wire';
import type { ChainConfig } from '#config';
import { createQuota } from './quota.ts';

/**
 * Wallets that are contracts. Their code decides whether a signature is theirs (EIP-1271), also before it is
 * deployed (EIP-6492).
 */
export interface ContractWallets {
  /** Whether this gateway can ask the chain. */
  knows(network: string): boolean;
  /** Further chains that can be asked. */
  add(chains: ContractWalletsOptions['chains']): void;
  /**
   * Asks the chain `network` whether its contract at `address` accepts the signature of `text`. False for an
   * address without code, which is not a contract. Rejects with GatewayError `service_unavailable` when the chain
   * cannot be asked, `rate_limit_exceeded` when it was asked too often.
   */
  verify(of: ContractSignature): Promise<boolean>;
  /** Loads the library, so that no request waits for that. */
  load(): Promise<void>;
}

interface ContractSignature {
  readonly network: string;
  /** Lower case. */
  readonly address: string;
  readonly text: string;
  readonly signature: string;
  /** Address of the client that asks. */
  readonly client: string;
}

interface ContractWalletsOptions {
  readonly chains: readonly Pick<ChainConfig, 'network' | 'rpcUrl'>[];
  readonly now: () => number;
  /** Longest wait for one answer of a chain. A sign-in takes two answers. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/**
 * Every check costs the operator two requests to its node. They are bounded by client and in all, but not by
 * wallet: strangers could use up the quota of somebody else's wallet.
 */
const CLIENT_PER_MINUTE = 60;
const ALL_PER_MINUTE = 600;
const RUNNING_MAX = 16;
/** Of a node: the longest is the code of a contract, which has 24 KiB. */
const ANSWER_BYTES_MAX = 1024 * 1024;

const HEX = /^0x(?:[0-9a-fA-F]{2})+$/;
const EIP_6492_SUFFIX = '6492'.repeat(16);
/**
 * Such a signature itself names the contract that answers, by a delegation that may be an old one, and a call that
 * sets it up.
 */
const ERC_8010_SUFFIX = '8010'.repeat(16);
/** Errors of a node that are the contract's own answer. Other errors say nothing about the signature. */
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
  let running = 0;

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
      const wait = clientQuota.take(networkOf(client)) || quota.take('');
      if (wait > 0) {
        throw new GatewayError(
          'rate_limit_exceeded',
          'Too many sign-ins of contract wallets: use one sign-in for many requests',
          {
            retryAfterS: wait / 1_000,
          },
        );
      }
      if (running >= RUNNING_MAX) throw unavailable(network);
      running += 1;
      try {
        return await ask(url, network, { address: address as Hex, text, signature: signature as Hex }, timeoutMs);
      } finally {
        running -= 1;
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
  // viem treats a node that does not answer as a wrong signature, so failures are noted here.
  let failure: unknown = null;
  const request = async (call: { readonly method: string; readonly params?: unknown }): Promise<unknown> => {
    try {
      return await rpc(url, call, timeoutMs);
    } catch (error) {
      if (!(error instanceof Reverted)) failure = error;
      throw error;
    }
  };
  // No look-ups off the chain: the contract chooses their address, and this gateway would fetch it.
  const client = createPublicClient({ transport: custom({ request }, { retryCount: 0 }), ccipRead: false });
  try {
    const code = await client.getCode({ address });
    // Without code it is an ordinary wallet, whose signature would have been known by now: the validator would take
    // its malleated form as well.
    if ((code?.length ?? 0) <= '0x'.length && !signature.endsWith(EIP_6492_SUFFIX)) return false;
    if (await client.verifyMessage({ address, message: text, signature })) return true;
  } catch {
    // A node that failed is reported below. Any other error is about the signature: its form, or the contract's view.
  }
  if (failure !== null) throw unavailable(network, failure);
  return false;
}

/** The contract refused, as the chain's answer says. */
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
  const answer: unknown = JSON.parse(text);
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
