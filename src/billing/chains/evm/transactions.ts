import { setTimeout } from 'node:timers/promises';
import { keccak256 } from 'viem';
import type { Hex, PrivateKeyAccount } from 'viem';
import { dropOldest } from '#wire';
import { ChainUnavailable } from '../chain.ts';
import { NodeRefusal, type EvmNode } from './rpc.ts';

/** For this time a transaction is sent again unchanged; after it, with higher fees. It is a few blocks on any chain. */
const REPLACE_AFTER_MS = 20_000;
/** The treasury's next transaction counts as stuck if no block includes it for this time. */
const STUCK_AFTER_MS = 90_000;
/** For this time after it was seen, a node is not asked again whether it still has a transaction. */
const HEARD_MS = 3_000;
const ATTEMPTS_MAX = 16;
/** Gateways that compete for the same nonce wait a random time. Its maximum grows by this after every attempt. */
const STEP_MS = 10;
/** The highest fees of a replacement, as a multiple of the usual fees. */
const FEES_TIMES_MAX = 10n;
const REMEMBERED_MAX = 1000;

interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

interface SentTransaction extends Fees {
  readonly nonce: number;
  readonly hash: Hex;
  readonly raw: Hex;
  readonly at: number;
}

/** Broadcasts transactions of one key, which several gateways may use at the same time. */
interface EvmTransactions {
  /**
   * Broadcasts a call and resolves with the transaction id. `key` identifies the purpose: a repetition sends the same
   * transaction or a replacement of it. After a rejection with ChainUnavailable the transaction may still have been
   * broadcast.
   */
  send(key: string, call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint }): Promise<Hex>;
  /**
   * Id of the transaction for this purpose, if it was broadcast too recently to be replaced and the node still has it;
   * else null. Rejects with ChainUnavailable.
   */
  waiting(key: string): Promise<Hex | null>;
}

interface TransactionSetup {
  readonly node: EvmNode;
  readonly account: PrivateKeyAccount;
  readonly chainId: number;
  readonly now: () => number;
}

export function createEvmTransactions(setup: TransactionSetup): EvmTransactions {
  const { node, account, chainId, now } = setup;
  const sent = new Map<string, SentTransaction>();
  // The next nonce of the chain, and since when it is the next.
  let head = { nonce: -1, since: 0 };
  let turn: Promise<unknown> = Promise.resolve();
  const recent = createHeard(node, now);

  // oxlint-disable-next-line complexity -- the branches are the states of one transaction
  async function send(key: string, call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint }): Promise<Hex> {
    // Lower nonces were refused because they are taken.
    let free = 0;
    let raise: Fees | null = null;
    let refusal: NodeRefusal | null = null;
    // The fees are read before the nonce. Requests between reading and using the nonce would give others time to take
    // it.
    const usual = await currentFees();
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      if (attempt > 1) await setTimeout(Math.random() * attempt * STEP_MS);
      const next = await node.transactionCount(account.address, 'latest');
      const pending = Math.max(next, await node.transactionCount(account.address, 'pending'));
      if (head.nonce !== next) head = { nonce: next, since: now() };
      const mine = sent.get(key);
      const isNew = mine !== undefined && now() - mine.at < REPLACE_AFTER_MS;
      // A transaction with a nonce beyond the pending ones waits for a transaction that is lost. It is made again with
      // the lost one's nonce.
      const waiting = mine && mine.nonce >= next && (isNew || mine.nonce <= pending) ? mine : null;
      const stuck = pending > next && now() - head.since >= STUCK_AFTER_MS;

      let ready: SentTransaction;
      if (waiting && isNew) ready = waiting;
      else {
        // A stuck transaction blocks all later ones, so it is replaced first, even if another gateway made it. That
        // gateway notices it and sends its own again.
        const nonce = stuck ? next : (waiting?.nonce ?? Math.max(pending, free));
        const least: Fees | null = raise ?? (waiting?.nonce === nonce ? higher(waiting) : stuck ? higher(usual) : null);
        const fees = least ? atLeast(usual, least) : usual;
        if (fees.maxFeePerGas > usual.maxFeePerGas * FEES_TIMES_MAX) {
          if (!waiting)
            throw new ChainUnavailable(
              `Transaction ${nonce} of ${account.address} is stuck. Its replacement would cost more than ${FEES_TIMES_MAX} times the usual fee`,
            );
          ready = waiting;
        } else ready = await sign(call, nonce, fees);
        remember(key, ready);
      }
      try {
        await node.sendRaw(ready.raw);
        return ready.hash;
      } catch (error) {
        if (!(error instanceof NodeRefusal)) throw error;
        const { words } = error;
        if (ALREADY_KNOWN.test(words)) return ready.hash;
        refusal = error;
        if (UNDERPRICED.test(words) && (stuck || (waiting && ready !== waiting))) {
          raise = doubled(ready);
          // The node refused it, so it must not be remembered and sent again unchanged.
          if (waiting) remember(key, waiting);
          else sent.delete(key);
        } else if (waiting && NONCE_TAKEN.test(words)) {
          // The transaction or its replacement was mined meanwhile. The chain shows which.
          return waiting.hash;
        } else if (NONCE_TAKEN.test(words) || UNDERPRICED.test(words)) {
          free = ready.nonce + 1;
          sent.delete(key);
        } else {
          if (ready !== waiting) sent.delete(key);
          throw NO_MONEY.test(words)
            ? new ChainUnavailable(`The treasury ${account.address} cannot pay for gas: ${words}`, { cause: error })
            : error;
        }
      }
    }
    throw new ChainUnavailable(
      `The node accepted no transaction of ${account.address} in ${ATTEMPTS_MAX} attempts: ${refusal?.words ?? ''}`,
    );
  }

  async function currentFees(): Promise<Fees> {
    const block = await node.block('latest');
    if (!block || block.baseFee === null) throw new ChainUnavailable('The node gave no base fee (EIP-1559)');
    const maxPriorityFeePerGas = await node.priorityFee();
    // The base fee doubles in six full blocks.
    return { maxFeePerGas: block.baseFee * 2n + maxPriorityFeePerGas, maxPriorityFeePerGas };
  }

  async function sign(
    call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint },
    nonce: number,
    fees: Fees,
  ): Promise<SentTransaction> {
    const { maxFeePerGas, maxPriorityFeePerGas } = fees;
    const raw = await account.signTransaction({
      type: 'eip1559',
      chainId,
      nonce,
      maxFeePerGas,
      maxPriorityFeePerGas,
      ...call,
    });
    return { nonce, hash: keccak256(raw), raw, at: now(), maxFeePerGas, maxPriorityFeePerGas };
  }

  function remember(key: string, transaction: SentTransaction): void {
    // An earlier transaction with this nonce was replaced or lost. Its next attempt takes another nonce.
    for (const [other, { nonce }] of sent) if (nonce === transaction.nonce) sent.delete(other);
    sent.delete(key);
    sent.set(key, transaction);
    dropOldest(sent, REMEMBERED_MAX);
  }

  return {
    waiting: (key) => recent.waiting(sent.get(key)),
    send(key, call) {
      // One after the other, because two concurrent sends would take the same nonce.
      const result = turn.then(() => send(key, call));
      turn = result.catch(() => {});
      return result;
    },
  };
}

// Error texts of geth, reth, Erigon, Nethermind, Besu and anvil.
const ALREADY_KNOWN = /already ?known|known transaction|already imported|already in (?:the )?(?:pool|mempool)/i;
const NONCE_TAKEN = /nonce (?:is )?too low|nonce too low|old ?nonce|nonce.{0,20}(?:used|already)/i;
const UNDERPRICED = /underpriced|gas price too low to replace|fee too low/i;
const NO_MONEY = /insufficient (?:funds|balance)|insufficientfunds|not enough (?:funds|balance)/i;

/** Nodes replace a transaction if the fees are a tenth (geth) or an eighth (others) higher. */
const higher = (fees: Fees): Fees => ({
  maxFeePerGas: (fees.maxFeePerGas * 5n) / 4n + 1n,
  maxPriorityFeePerGas: (fees.maxPriorityFeePerGas * 5n) / 4n + 1n,
});
const doubled = (fees: Fees): Fees => ({
  maxFeePerGas: fees.maxFeePerGas * 2n,
  maxPriorityFeePerGas: fees.maxPriorityFeePerGas * 2n + 1n,
});

function atLeast(fees: Fees, least: Fees): Fees {
  const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
  const maxPriorityFeePerGas = max(fees.maxPriorityFeePerGas, least.maxPriorityFeePerGas);
  return { maxFeePerGas: max(max(fees.maxFeePerGas, least.maxFeePerGas), maxPriorityFeePerGas), maxPriorityFeePerGas };
}

/** Remembers when the node last confirmed that it has a transaction. */
function createHeard(node: Pick<EvmNode, 'isPending'>, now: () => number) {
  const at = new Map<Hex, number>();
  const note = (hash: Hex): void => {
    dropOldest(at, REMEMBERED_MAX - 1);
    at.set(hash, now());
  };
  return {
    /** Id of a transaction that is too recent to be replaced and that the node has; else null. */
    async waiting(sent: SentTransaction | undefined): Promise<Hex | null> {
      if (sent === undefined || now() - sent.at >= REPLACE_AFTER_MS) return null;
      if (now() - (at.get(sent.hash) ?? 0) < HEARD_MS) return sent.hash;
      if (!(await node.isPending(sent.hash))) return null;
      note(sent.hash);
      return sent.hash;
    },
  };
}
