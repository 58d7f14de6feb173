import { createPublicClient, http, type Hex, type TransactionReceipt } from 'viem';
import type { Anvil } from './anvil.ts';

/**
 * Waits until a transaction is in a block. If it arrives while anvil mines a block, it may stay in the pool until the
 * next block. So another block is mined for one that waits for long.
 */
export async function receiptOf(anvil: Anvil, hash: Hex): Promise<TransactionReceipt> {
  const client = createPublicClient({ transport: http(anvil.url), pollingInterval: 5 });
  const found = () => client.waitForTransactionReceipt({ hash, timeout: 2_000 });
  return found().catch(() => anvil.mine(1).then(found));
}
