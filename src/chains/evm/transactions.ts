import { setTimeout } from 'node:timers/promises';
import { keccak256 } from 'viem';
import type { Hex, PrivateKeyAccount } from 'viem';
import { dropOldest } from '#wire';
import { ChainUnavailable } from '../chain.ts';
import { NodeRefusal, type EvmNode } from './rpc.ts';

/** A transaction is given again as it is for so long, and with more fees after. Some blocks of any chain. */
const REPLACE_AFTER_MS = 20_000;
/** The treasury's next transaction is taken to be stuck when no block took it for so long. */
const STUCK_AFTER_MS = 90_000;
/** A node that has a transaction is not asked for so long whether it still has it. */
const HEARD_MS = 3_000;
const ATTEMPTS_MAX = 16;
/**
 * Gateways that take the same nonce again and again get out of step by so much more, at random, after every attempt.
 */
const STEP_MS = 10;
/** However long a transaction waits, its fees rise no further than to so many times the usual ones. */
const FEES_TIMES_MAX = 10n;
const REMEMBERED_MAX = 1000;

interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

interface Sent extends Fees {
  readonly nonce: number;
  readonly hash: Hex;
  readonly raw: Hex;
  readonly at: number;
}

/** Broadcasts transactions of one key that several gateways may use at once. */
interface EvmTransactions {
  /**
   * Broadcasts a call and resolves with the transaction's id. `key` names what it does: the same again is the same
   * transaction, or one that replaces it. Rejects with ChainUnavailable, after which it may have been broadcast.
   */
  send(key: string, call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint }): Promise<Hex>;
  /**
   * Id of the transaction that does this, where it was broadcast so lately that it is not replaced yet, and the node
   * still has it. Rejects with ChainUnavailable.
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
  const sent = new Map<string, Sent>();
  // The nonce that the chain waits for, and since when.
  let head = { nonce: -1, since: 0 };
  let turn: Promise<unknown> = Promise.resolve();
  const heard = createHeard(node, now);

  async function send(key: string, call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint }): Promise<Hex> {
    // Nonces below it were refused as taken.
    let free = 0;
    let raise: Fees | null = null;
    let refusal: NodeRefusal | null = null;
    // Before the nonce: what is asked between reading it and using it is time for others to take it.
    const usual = await currentFees();
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      if (attempt > 1) await setTimeout(Math.random() * attempt * STEP_MS);
      const next = await node.transactionCount(account.address, 'latest');
      const pending = Math.max(next, await node.transactionCount(account.address, 'pending'));
      if (head.nonce !== next) head = { nonce: next, since: now() };
      const mine = sent.get(key);
      const isNew = mine !== undefined && now() - mine.at < REPLACE_AFTER_MS;
      // Beyond the pending ones it waits for a transaction that has gone: it is made anew, in that one's place.
      const waiting = mine && mine.nonce >= next && (isNew || mine.nonce <= pending) ? mine : null;
      const stuck = pending > next && now() - head.since >= STUCK_AFTER_MS;

      let ready: Sent;
      if (waiting && isNew) ready = waiting;
      else {
        // What blocks all that come after it is replaced first, whosever it is: who made it finds that out and
        // sends it again.
        const nonce = stuck ? next : (waiting?.nonce ?? Math.max(pending, free));
        const least: Fees | null = raise ?? (waiting?.nonce === nonce ? higher(waiting) : stuck ? higher(usual) : null);
        const fees = least ? atLeast(usual, least) : usual;
        if (fees.maxFeePerGas > usual.maxFeePerGas * FEES_TIMES_MAX) {
          if (!waiting)
            throw new ChainUnavailable(
              `What holds up transaction ${nonce} of ${account.address} would cost more than ${FEES_TIMES_MAX} times the usual fee to replace`,
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
          // It was not taken: what is remembered must not be given again as it is.
          if (waiting) remember(key, waiting);
          else sent.delete(key);
        } else if (waiting && NONCE_TAKEN.test(words)) {
          // It, or one that replaced it, has been mined since it was asked: the chain tells which.
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
      `No transaction of ${account.address} was taken in ${ATTEMPTS_MAX} attempts: ${refusal?.words ?? ''}`,
    );
  }

  async function currentFees(): Promise<Fees> {
    const block = await node.block('latest');
    if (!block || block.baseFee === null) throw new ChainUnavailable('The node names no base fee (EIP-1559)');
    const maxPriorityFeePerGas = await node.priorityFee();
    // Six full blocks in a row double the base fee.
    return { maxFeePerGas: block.baseFee * 2n + maxPriorityFeePerGas, maxPriorityFeePerGas };
  }

  async function sign(
    call: { readonly to: Hex; readonly data: Hex; readonly gas: bigint },
    nonce: number,
    fees: Fees,
  ): Promise<Sent> {
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

  function remember(key: string, transaction: Sent): void {
    // Who had this nonce before was replaced, or never heard of: it takes another one when it comes again.
    for (const [other, { nonce }] of sent) if (nonce === transaction.nonce) sent.delete(other);
    sent.delete(key);
    sent.set(key, transaction);
    dropOldest(sent, REMEMBERED_MAX);
  }

  return {
    waiting: (key) => heard.waiting(sent.get(key)),
    send(key, call) {
      // One after the other: two at once would take the same nonce.
      const result = turn.then(() => send(key, call));
      turn = result.catch(() => {});
      return result;
    },
  };
}

// geth, reth, Erigon, Nethermind, Besu, anvil.
const ALREADY_KNOWN = /already ?known|known transaction|already imported|already in (?:the )?(?:pool|mempool)/i;
const NONCE_TAKEN = /nonce (?:is )?too low|nonce too low|old ?nonce|nonce.{0,20}(?:used|already)/i;
const UNDERPRICED = /underpriced|gas price too low to replace|fee too low/i;
const NO_MONEY = /insufficient (?:funds|balance)|insufficientfunds|not enough (?:funds|balance)/i;

/** Nodes replace a transaction for a tenth more (geth) or an eighth (others). */
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

/** Remembers when the node told a transaction. */
function createHeard(node: Pick<EvmNode, 'isPending'>, now: () => number) {
  const at = new Map<Hex, number>();
  const note = (hash: Hex): void => {
    dropOldest(at, REMEMBERED_MAX - 1);
    at.set(hash, now());
  };
  return {
    /** Id of a transaction that is not to be replaced yet, and that the node has; else null. */
    async waiting(sent: Sent | undefined): Promise<Hex | null> {
      if (sent === undefined || now() - sent.at >= REPLACE_AFTER_MS) return null;
      if (now() - (at.get(sent.hash) ?? 0) < HEARD_MS) return sent.hash;
      if (!(await node.isPending(sent.hash))) return null;
      note(sent.hash);
      return sent.hash;
    },
  };
}
