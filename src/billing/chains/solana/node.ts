import { setTimeout as pause } from 'node:timers/promises';
import {
  createSolanaRpc,
  type Address,
  type Base64EncodedWireTransaction,
  type Blockhash,
  type Signature,
} from '@solana/kit';
import { ChainUnavailable } from '../chain.ts';
import {
  flag,
  invalid,
  natural,
  objectOf,
  textOf,
  failureOf,
  inContext,
  readAccount,
  readBlockhash,
  readSignatures,
  readStatuses,
  type LatestBlockhash,
  type Level,
  type Moment,
  type SignatureEntry,
  type SignatureStatus,
  type SolanaAccount,
} from './node-answers.ts';
import { readTransaction, type SolanaTransaction } from './transaction.ts';

/**
 * A JSON-RPC node. Every request has a timeout and every answer is checked. All methods reject with ChainUnavailable.
 */
export interface SolanaNode {
  genesisHash(): Promise<string>;
  /** Rejects if the node knows that it is behind. */
  checkHealth(): Promise<void>;
  /** The oldest slot whose transactions the node still has. */
  oldestSlot(): Promise<bigint>;
  /** The time of a slot's block in epoch milliseconds, as the validators agreed on it. */
  blockTime(slot: bigint): Promise<number>;
  /**
   * The present moment at a commitment level. The final moment never goes back, so an older answer than before is
   * refused.
   */
  moment(level: 'processed' | Level): Promise<Moment>;
  latestBlockhash(): Promise<LatestBlockhash>;
  isBlockhashValid(blockhash: string, level: 'processed' | Level, minSlot: bigint): Promise<boolean>;
  /** `level`: default `confirmed`. */
  account(address: Address, level?: Level): Promise<SolanaAccount | null>;
  lamports(address: Address): Promise<bigint>;
  /** The final balance of a token account, and its slot. */
  tokens(account: Address): Promise<{ readonly slot: bigint; readonly amount: bigint }>;
  /** Searches the whole history. Concurrent requests are combined into one, as for `moment`. */
  status(signature: string): Promise<SignatureStatus>;
  transaction(signature: string, level: Level): Promise<SolanaTransaction | null>;
  /** The transactions that mention an account, newest first. */
  signatures(
    account: Address,
    level: Level,
    page: { readonly before?: string; readonly limit: number; readonly minSlot: bigint },
  ): Promise<SignatureEntry[]>;
  /** Resolves with null if the transaction would succeed, else with the chain's error. */
  simulate(transaction: string): Promise<string | null>;
  send(transaction: string, signature: string): Promise<void>;
}

const DATA_BYTES_MAX = 4_096;
/** How many statuses a node returns in one answer. */
const STATUSES_MAX = 256;

type NodeRequester = <Answer>(
  what: string,
  request: { send(options: { abortSignal: AbortSignal }): Promise<unknown> },
  read: (answer: unknown) => Answer,
) => Promise<Answer>;

/** Sends requests with a timeout. Rejects with ChainUnavailable, also if the answer cannot be read. */
function createAsk(timeoutMs: number, closed: AbortSignal): NodeRequester {
  return async (what, request, read) => {
    let answer: unknown;
    try {
      answer = await request.send({ abortSignal: AbortSignal.any([closed, AbortSignal.timeout(timeoutMs)]) });
    } catch (error) {
      throw new ChainUnavailable(`the Solana node did not answer the request for the ${what}: ${causeOf(error)}`, {
        cause: error,
      });
    }
    try {
      return read(answer);
    } catch (error) {
      throw new ChainUnavailable(
        `the Solana node gave an invalid answer to the request for the ${what}: ${causeOf(error)}`,
        { cause: error },
      );
    }
  };
}

export function createSolanaNode(url: string, timeoutMs: number, closed: AbortSignal): SolanaNode {
  const rpc = createSolanaRpc(url);
  let newest: Moment = { slot: 0n, height: 0n };

  const ask = createAsk(timeoutMs, closed);

  const momentAt = (level: 'processed' | Level): Promise<Moment> =>
    ask('slot', rpc.getEpochInfo({ commitment: level }), (answer) => {
      const { absoluteSlot, blockHeight } = objectOf(answer, 'the answer');
      const moment = { slot: natural(absoluteSlot, 'a slot'), height: natural(blockHeight, 'a block height') };
      if (moment.height > moment.slot) throw new Error('more blocks than slots');
      if (level !== 'finalized') return moment;
      if (moment.slot < newest.slot || moment.height < newest.height)
        throw new Error(`slot ${moment.slot} was final before ${newest.slot}, which it reported before`);
      newest = moment;
      return moment;
    });
  // All looks at open payments share these requests. Each level has its own, so that a failure of one level does not
  // fail another.
  const sharedMoment = () =>
    askedTogether(1, async ([level]: readonly ('processed' | Level)[]) => [await momentAt(level!)]);
  const moments = { processed: sharedMoment(), confirmed: sharedMoment(), finalized: sharedMoment() };
  const status = askedTogether(STATUSES_MAX, (signatures: readonly string[]) =>
    ask(
      'status of a transaction',
      rpc.getSignatureStatuses(signatures as readonly Signature[], { searchTransactionHistory: true }),
      (answer) => readStatuses(answer, signatures.length),
    ),
  );

  return {
    genesisHash: () => ask('genesis hash', rpc.getGenesisHash(), (answer) => textOf(answer, 'a hash')),
    checkHealth: () =>
      ask('health', rpc.getHealth(), (answer) => (answer === 'ok' ? undefined : invalid('ok', answer))),
    oldestSlot: () => ask('oldest slot', rpc.getFirstAvailableBlock(), (answer) => natural(answer, 'a slot')),
    blockTime: (slot) =>
      ask('time of a block', rpc.getBlockTime(slot), (answer) => Number(natural(answer, 'a time')) * 1_000),
    moment: (level) => moments[level](level),
    latestBlockhash: () => ask('latest blockhash', rpc.getLatestBlockhash({ commitment: 'confirmed' }), readBlockhash),
    isBlockhashValid: (blockhash, level, minSlot) =>
      ask(
        'validity of a blockhash',
        rpc.isBlockhashValid(blockhash as Blockhash, { commitment: level, minContextSlot: minSlot }),
        (answer) => {
          const { slot, value } = inContext(answer);
          if (slot < minSlot) throw new Error(`it is of slot ${slot}, before ${minSlot}`);
          return flag(value, 'a truth value');
        },
      ),
    account: (address, level = 'confirmed') =>
      ask(
        'account',
        rpc.getAccountInfo(address, {
          commitment: level,
          encoding: 'base64',
          dataSlice: { offset: 0, length: DATA_BYTES_MAX },
        }),
        readAccount,
      ),
    lamports: (address) =>
      ask('balance', rpc.getBalance(address, { commitment: 'confirmed' }), (answer) =>
        natural(inContext(answer).value, 'an amount'),
      ),
    tokens: (account) =>
      ask('balance of a token account', rpc.getTokenAccountBalance(account, { commitment: 'finalized' }), (answer) => {
        const { slot, value } = inContext(answer);
        return { slot, amount: natural(objectOf(value, 'a balance')['amount'], 'an amount') };
      }),
    status,
    transaction: (signature, level) =>
      ask(
        'transaction',
        rpc.getTransaction(signature as Signature, {
          commitment: level,
          encoding: 'base64',
          maxSupportedTransactionVersion: 0,
        }),
        (answer) => (answer === null ? null : readTransaction(answer, signature)),
      ),
    signatures: (account, level, { before, limit, minSlot }) =>
      ask(
        'transactions of an account',
        rpc.getSignaturesForAddress(account, {
          commitment: level,
          limit,
          minContextSlot: minSlot,
          ...(before === undefined ? {} : { before: before as Signature }),
        }),
        (answer) => readSignatures(answer, level, limit),
      ),
    simulate: (transaction) =>
      ask(
        'simulation of a transaction',
        rpc.simulateTransaction(transaction as Base64EncodedWireTransaction, {
          commitment: 'confirmed',
          encoding: 'base64',
          sigVerify: false,
        }),
        (answer) => failureOf(objectOf(inContext(answer).value, 'the outcome')['err']),
      ),
    // Preflight is for senders that do not simulate. Here its errors would add nothing, and could be mistaken for a
    // refusal.
    send: (transaction, signature) =>
      ask(
        'broadcast of a transaction',
        rpc.sendTransaction(transaction as Base64EncodedWireTransaction, { encoding: 'base64', skipPreflight: true }),
        (answer) => {
          if (answer !== signature) throw new Error('it names another transaction');
        },
      ),
  };
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason';
  return error.name === 'TimeoutError' ? 'no answer in time' : error.message.slice(0, 200);
}

/** How long a request waits for others. */
const TOGETHER_MS = 10;

/**
 * Combines the requests of 10 ms into one. The combined request starts after each of them came, never before, so its
 * answer is as recent for each as an own answer. `ask` gets distinct keys, at most `keysMax`, and resolves with one
 * answer for each key, in the same order.
 */
function askedTogether<Key, Answer>(
  keysMax: number,
  ask: (keys: readonly Key[]) => Promise<readonly Answer[]>,
): (key: Key) => Promise<Answer> {
  let next: { readonly keys: Map<Key, number>; readonly answers: Promise<readonly Answer[]> } | null = null;

  const begin = () => {
    const keys = new Map<Key, number>();
    const answers = pause(TOGETHER_MS).then(() => {
      if (next?.keys === keys) next = null;
      return ask([...keys.keys()]);
    });
    return { keys, answers };
  };

  return async (key) => {
    if (next === null || (next.keys.size >= keysMax && !next.keys.has(key))) next = begin();
    const { keys, answers } = next;
    const at = keys.get(key) ?? keys.size;
    keys.set(key, at);
    return (await answers)[at]!;
  };
}
