import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { dropOldest } from '#wire';
import { TRANSFER, topicOf, transferOf, type EvmAsset, AUTHORIZATION_USED } from './asset.ts';
import { stillThere } from './blocks.ts';
import { isPruned, type EvmBlock, type EvmLog, type EvmNode, inOrder } from './rpc.ts';
import { AnswerTooLong } from '../ask-json.ts';
import { ChainUnavailable } from '../chain.ts';

/** Converts the amount that a Transfer reports into the amount that arrived. */
export type Arrived = (reported: MicroUsd) => MicroUsd;

/** Compares the token's logs with the treasury's balance. */
interface Arrivals {
  /** The conversion for the Transfers into the treasury in one block. */
  conversionOf(block: Pick<EvmBlock, 'number' | 'hash'>): Promise<Arrived>;
  /**
   * The amount by which the treasury's balance grew less over the blocks than the Transfers in and out report; negative
   * if it grew more. null: the node no longer knows the balances.
   */
  missing(
    blocks: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
    out: readonly EvmLog[],
  ): Promise<MicroUsd | null>;
}

const REMEMBERED_MAX = 1_000;

/**
 * A token that takes a fee, or reports false amounts, moves less than its logs say. Then all Transfers of that block
 * are reduced in proportion, so that the credits never exceed the arrived amount. Nodes that are not archives keep only
 * the balances of the last blocks (geth: 128). For older blocks the logs are trusted, as for an honest token.
 */
export function createArrivals(node: EvmNode, asset: EvmAsset, treasury: Hex): Arrivals {
  const ofBlocks = new Map<Hex, Arrived>();

  async function missing(
    { first, last }: { readonly first: bigint; readonly last: bigint },
    into: readonly EvmLog[],
    out: readonly EvmLog[],
  ): Promise<MicroUsd | null> {
    try {
      const before = first > 0n ? await asset.balanceOf(treasury, first - 1n) : 0n;
      return sumOf(into) - sumOf(out) - ((await asset.balanceOf(treasury, last)) - before);
    } catch (error) {
      if (isPruned(error)) return null;
      throw error;
    }
  }
  return {
    missing,
    async conversionOf({ number, hash }) {
      const known = ofBlocks.get(hash);
      if (known) return known;
      const logs = (topics: readonly (Hex | null)[]) =>
        node.logs({ address: asset.address, topics, in: { blockHash: hash } });
      const into = await logs([TRANSFER, null, topicOf(treasury)]);
      const out = await logs([TRANSFER, topicOf(treasury)]);
      const gone = await missing({ first: number, last: number }, into, out);
      const all = sumOf(into);
      if (gone === null) return (reported) => reported;
      // Balances are requested by block number, and another machine of the node may have another block with this
      // number.
      await stillThere(node, [{ number, hash }]);
      const came = gone <= 0n || all === 0n ? all : all > gone ? all - gone : 0n;
      const arrived: Arrived = came === all ? (reported) => reported : (reported) => (reported * came) / all;
      // The result for a block hash never changes, because a replaced block has another hash.
      dropOldest(ofBlocks, REMEMBERED_MAX - 1);
      ofBlocks.set(hash, arrived);
      return arrived;
    },
  };
}

function sumOf(logs: readonly EvmLog[]): MicroUsd {
  return logs.reduce((sum, log) => sum + (transferOf(log)?.value ?? 0n), 0n);
}

interface TransactionLogsOptions {
  readonly node: Pick<EvmNode, 'receipt' | 'logs'>;
  readonly asset: Hex;
  /** The Transfers to this address are read. */
  readonly payee: Hex;
  readonly log: Pick<EvmLog, 'transaction' | 'blockHash'>;
}

/**
 * The ordered logs of a transaction, with at least those that `carriedOut` needs. Rejects with ChainUnavailable if the
 * node does not have the transaction in that block.
 *
 * A receipt has the logs of one moment, so it is read first. Anybody can make a transaction with so many other logs
 * that its receipt is too long to be read. Then only the asset's logs of the block are requested.
 */
export async function logsOfTransaction(options: TransactionLogsOptions): Promise<readonly EvmLog[]> {
  const { node, asset, payee, log } = options;
  const { transaction, blockHash } = log;
  const receipt = await unlessTooLong(node.receipt(transaction));
  if (receipt !== 'too long') {
    if (receipt?.blockHash !== blockHash || !receipt.succeeded)
      throw new ChainUnavailable(`The node does not know transaction ${transaction} of its own log`);
    return receipt.logs;
  }
  const ask = (topics: readonly (Hex | null)[]) => node.logs({ address: asset, topics, in: { blockHash } });
  const used = await ask([AUTHORIZATION_USED]);
  const paid = await ask([TRANSFER, null, topicOf(payee)]);
  return [...used, ...paid].filter((log) => log.transaction === transaction).sort(inOrder);
}

/** The receipt that a node gives, or `too long`. */
export async function unlessTooLong<T>(answering: Promise<T>): Promise<T | 'too long'> {
  try {
    return await answering;
  } catch (error) {
    if (error instanceof AnswerTooLong) return 'too long';
    throw error;
  }
}
