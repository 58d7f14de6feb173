import type { Hex } from 'viem';
import { AnswerTooLong } from '../ask-json.ts';
import { ChainUnavailable } from '../chain.ts';
import { AUTHORIZATION_USED, TRANSFER, topicOf } from './asset.ts';
import { inOrder, type EvmLog, type EvmNode } from './rpc.ts';

interface TransactionLogsOptions {
  readonly node: Pick<EvmNode, 'receipt' | 'logs'>;
  readonly asset: Hex;
  /** The Transfers to this address are read. */
  readonly payee: Hex;
  /** A log of the transaction. */
  readonly of: Pick<EvmLog, 'transaction' | 'blockHash'>;
}

/**
 * The ordered logs of a transaction, with at least those that `carriedOut` needs. Rejects with ChainUnavailable if the
 * node does not have the transaction in that block.
 *
 * A receipt has the logs of one moment, so it is read first. Anybody can make a transaction with so many other logs
 * that its receipt is too long to be read. Then only the asset's logs of the block are requested.
 */
export async function logsOfTransaction(options: TransactionLogsOptions): Promise<readonly EvmLog[]> {
  const { node, asset, payee, of } = options;
  const { transaction, blockHash } = of;
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
export async function unlessTooLong<T>(asked: Promise<T>): Promise<T | 'too long'> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof AnswerTooLong) return 'too long';
    throw error;
  }
}
