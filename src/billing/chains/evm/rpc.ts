import type { Hex } from 'viem';
import { ChainUnavailable } from '../chain.ts';
import { AnswerTooLong, askJson } from '../ask-json.ts';

const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/**
 * For the logs of a single block, which cannot be requested in parts. Anybody can fill a block with transfers of 0. On
 * Base such a block has about 68,000 of them, with 640 bytes each.
 */
const BLOCK_BYTES_MAX = 64 * 1024 * 1024;
const WORDS_MAX = 200;

export interface EvmBlock {
  readonly number: bigint;
  readonly hash: Hex;
  /** Epoch seconds. */
  readonly timestamp: bigint;
  /** null on chains without EIP-1559. */
  readonly baseFee: bigint | null;
}

export interface EvmLog {
  /** All hex values are in lower case. */
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly block: bigint;
  readonly blockHash: Hex;
  readonly transaction: Hex;
  readonly index: number;
}

interface EvmReceipt {
  readonly transaction: Hex;
  readonly block: bigint;
  readonly blockHash: Hex;
  readonly succeeded: boolean;
  readonly logs: readonly EvmLog[];
}

export interface LogFilter {
  readonly address: Hex;
  readonly topics: readonly (Hex | readonly Hex[] | null)[];
  readonly in: { readonly blockHash: Hex } | { readonly from: bigint; readonly to: bigint };
}

interface EvmCall {
  readonly to: Hex;
  readonly data: Hex;
  readonly from?: Hex;
  readonly gas?: bigint;
}

/**
 * The node refused a request, with its own text. It counts as ChainUnavailable. Callers that understand the text may
 * treat it otherwise.
 */
export class NodeRefusal extends ChainUnavailable {
  readonly words: string;
  constructor(words: string) {
    super(`The node refuses: ${words}`);
    this.words = words;
  }
}

export class Reverted extends Error {
  override readonly name = 'Reverted';
}

/**
 * The parsed answers of an EVM node. Every method may reject with ChainUnavailable, also for an answer of the wrong
 * shape.
 */
export interface EvmNode {
  chainId(): Promise<bigint>;
  /** null: the node does not know the block. */
  block(which: 'latest' | 'finalized' | bigint): Promise<EvmBlock | null>;
  /** Throws Reverted. */
  call(call: EvmCall, at: 'latest' | bigint): Promise<Hex>;
  code(address: Hex, at: 'latest' | bigint): Promise<Hex>;
  logs(filter: LogFilter): Promise<EvmLog[]>;
  /** null: the node does not know the transaction, or it is in no block yet. */
  receipt(transaction: Hex): Promise<EvmReceipt | null>;
  /** Whether the node has the transaction and it waits for a block. */
  isPending(transaction: Hex): Promise<boolean>;
  transactionCount(address: Hex, at: 'latest' | 'pending'): Promise<number>;
  /** Throws Reverted. */
  estimateGas(call: EvmCall): Promise<bigint>;
  priorityFee(): Promise<bigint>;
  sendRaw(raw: Hex): Promise<void>;
  close(): void;
}

export function createEvmNode(options: { readonly rpcUrl: string; readonly timeoutMs: number }): EvmNode {
  const url = new URL(options.rpcUrl);
  const closing = new AbortController();
  let ids = 0;

  async function request(method: string, params: readonly unknown[], bytesMax = ANSWER_BYTES_MAX): Promise<unknown> {
    const id = ++ids;
    const answer = await askJson(
      url,
      { jsonrpc: '2.0', id, method, params },
      { timeoutMs: options.timeoutMs, bytesMax, signal: closing.signal },
    );
    const body = record(answer.body, `${method}: HTTP ${answer.status}`);
    if (body['id'] !== id && !(body['id'] === null && body['error'] !== undefined))
      throw nonsense(method, 'an answer to another question');
    const { error } = body;
    if (error !== undefined && error !== null) {
      const { code, message } = record(error, method);
      const words = plainWords(message);
      if (code === 3 || REVERTED.test(words)) throw new Reverted(words);
      throw new NodeRefusal(words || `error ${String(code).slice(0, 20)}`);
    }
    if (!('result' in body)) throw nonsense(method, 'neither result nor error');
    return body['result'];
  }
  const callParams = ({ to, data, from, gas }: EvmCall) => ({
    to,
    data,
    ...(from && { from }),
    ...(gas !== undefined && { gas: toQuantity(gas) }),
  });
  const atParam = (at: string | bigint) => (typeof at === 'bigint' ? toQuantity(at) : at);

  return {
    chainId: async () => quantity(await request('eth_chainId', []), 'eth_chainId'),
    async block(which) {
      let answer: unknown;
      try {
        answer = await request('eth_getBlockByNumber', [atParam(which), false]);
      } catch (error) {
        // For an unknown block, some nodes return an error and others null.
        if (error instanceof NodeRefusal && UNKNOWN_BLOCK.test(error.words)) return null;
        throw error;
      }
      if (answer === null) return null;
      const block = record(answer, 'eth_getBlockByNumber');
      const number = quantity(block['number'], 'block number');
      if (typeof which === 'bigint' && number !== which)
        throw nonsense('eth_getBlockByNumber', `block ${number} when asked for ${which}`);
      const baseFee = block['baseFeePerGas'];
      return {
        number,
        hash: hex32(block['hash'], 'block hash'),
        timestamp: quantity(block['timestamp'], 'block timestamp'),
        baseFee: baseFee === undefined || baseFee === null ? null : quantity(baseFee, 'baseFeePerGas'),
      };
    },
    call: async (call, at) => bytes(await request('eth_call', [callParams(call), atParam(at)]), 'eth_call'),
    code: async (address, at) => bytes(await request('eth_getCode', [address, atParam(at)]), 'eth_getCode'),
    async logs({ address, topics, in: where }) {
      const range = 'blockHash' in where ? where : { fromBlock: toQuantity(where.from), toBlock: toQuantity(where.to) };
      const isOneBlock = 'blockHash' in where || where.from === where.to;
      const bytesMax = isOneBlock ? BLOCK_BYTES_MAX : ANSWER_BYTES_MAX;
      const answer = await request('eth_getLogs', [{ address, topics, ...range }], bytesMax);
      if (!Array.isArray(answer)) throw nonsense('eth_getLogs', 'no list');
      const logs = answer.map(parseLog);
      // Logs outside the filter would be counted as money.
      if (!logs.every((log) => answersFilter(log, address, topics, where)))
        throw nonsense('eth_getLogs', 'logs that were not asked for');
      return logs.sort(inOrder);
    },
    async receipt(transaction) {
      const answer = await request('eth_getTransactionReceipt', [transaction]);
      if (answer === null) return null;
      const receipt = record(answer, 'eth_getTransactionReceipt');
      if (receipt['blockNumber'] === null) return null;
      const block = quantity(receipt['blockNumber'], 'receipt');
      const blockHash = hex32(receipt['blockHash'], 'receipt');
      const { logs } = receipt;
      if (!Array.isArray(logs)) throw nonsense('eth_getTransactionReceipt', 'no logs');
      const own = logs.map(parseLog).sort(inOrder);
      if (
        hex32(receipt['transactionHash'], 'receipt') !== transaction.toLowerCase() ||
        own.some((log) => log.blockHash !== blockHash)
      )
        throw nonsense('eth_getTransactionReceipt', 'the receipt of another transaction');
      return {
        transaction: transaction.toLowerCase() as Hex,
        block,
        blockHash,
        succeeded: quantity(receipt['status'], 'receipt') === 1n,
        logs: own,
      };
    },
    async isPending(transaction) {
      const answer = await request('eth_getTransactionByHash', [transaction]);
      return answer !== null && record(answer, 'eth_getTransactionByHash')['blockNumber'] === null;
    },
    transactionCount: async (address, at) => {
      const count = quantity(await request('eth_getTransactionCount', [address, at]), 'eth_getTransactionCount');
      if (count > BigInt(Number.MAX_SAFE_INTEGER)) throw nonsense('eth_getTransactionCount', 'a count beyond reason');
      return Number(count);
    },
    // The newest block is used. In the pending block the same transfer may already be done, so the estimate would
    // revert.
    estimateGas: async (call) =>
      quantity(await request('eth_estimateGas', [callParams(call), 'latest']), 'eth_estimateGas'),
    priorityFee: async () => quantity(await request('eth_maxPriorityFeePerGas', []), 'eth_maxPriorityFeePerGas'),
    sendRaw: async (raw) => void hex32(await request('eth_sendRawTransaction', [raw]), 'eth_sendRawTransaction'),
    close: () => closing.abort(),
  };
}

/**
 * Whether a refusal means that the node no longer has the state of an old block. The patterns match geth, Erigon,
 * Nethermind, reth and providers.
 */
export function isPruned(error: unknown): boolean {
  return error instanceof NodeRefusal && PRUNED.test(error.words);
}

/**
 * Whether a refusal may mean that fewer blocks should be requested. Providers have no common text for it, so any
 * refusal may mean it.
 */
export function mayBeTooMuch(error: unknown): boolean {
  return error instanceof AnswerTooLong || error instanceof NodeRefusal;
}

/** Sorts logs by block, and within a block by log index. */
export function inOrder(a: EvmLog, b: EvmLog): number {
  return a.block === b.block ? a.index - b.index : a.block < b.block ? -1 : 1;
}

const REVERTED = /revert|invalid opcode|invalidopcode|invalid jump|out of ?gas|stack (?:under|over)flow/i;
const UNKNOWN_BLOCK = /unknown block|block not found|header not found|out of ?range/i;
const PRUNED =
  /missing trie node|pruned|historical state|state .{0,60}(?:not|un)[ -]?available|old data not available|distance to target block|archive/i;

function answersFilter(log: EvmLog, address: Hex, topics: LogFilter['topics'], where: LogFilter['in']): boolean {
  const inRange =
    'blockHash' in where ? log.blockHash === where.blockHash : log.block >= where.from && log.block <= where.to;
  const matches = (filter: Hex | readonly Hex[] | null, index: number): boolean => {
    const topic = log.topics[index];
    return (
      filter === null ||
      (topic !== undefined && (typeof filter === 'string' ? filter === topic : filter.includes(topic)))
    );
  };
  return inRange && log.address === address.toLowerCase() && topics.every(matches);
}

function parseLog(value: unknown): EvmLog {
  const log = record(value, 'log');
  const topics = log['topics'];
  if (!Array.isArray(topics) || topics.length > 4) throw nonsense('log', 'no topics');
  if (log['removed'] === true) throw nonsense('log', 'one that was removed');
  const index = quantity(log['logIndex'], 'logIndex');
  if (index > 10_000_000n) throw nonsense('log', 'an index beyond reason');
  const address = bytes(log['address'], 'log address');
  if (address.length !== 42) throw nonsense('log', 'no address');
  return {
    address,
    topics: topics.map((topic) => hex32(topic, 'topic')),
    data: bytes(log['data'], 'log data'),
    block: quantity(log['blockNumber'], 'log block'),
    blockHash: hex32(log['blockHash'], 'log block'),
    transaction: hex32(log['transactionHash'], 'log transaction'),
    index: Number(index),
  };
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw nonsense(what, 'no object');
  return value as Record<string, unknown>;
}

function quantity(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw nonsense(what, 'no number');
  return BigInt(value);
}

function bytes(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || value.length % 2 !== 0 || !/^0x[0-9a-f]*$/i.test(value))
    throw nonsense(what, 'no bytes');
  return value.toLowerCase() as Hex;
}

function hex32(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{64}$/i.test(value)) throw nonsense(what, 'no 32 bytes');
  return value.toLowerCase() as Hex;
}

const toQuantity = (number: bigint): string => `0x${number.toString(16)}`;

/** Untrusted text, made safe for a log line and for a client. */
export function plainWords(text: unknown): string {
  if (typeof text !== 'string') return '';
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  return text.slice(0, WORDS_MAX).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
}

function nonsense(what: string, got: string): ChainUnavailable {
  return new ChainUnavailable(`The node gave an invalid answer (${what}: ${got})`);
}
