import { setTimeout as pause } from 'node:timers/promises';
import { ChainUnavailable, FinalityBroken } from '../chain.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

export interface EvmHeads {
  readonly latest: EvmBlock;
  readonly final: EvmBlock;
}

/**
 * Reads the newest and the newest final block. `finality`: blocks that make a block final, itself included; null: the
 * node's `finalized` block counts.
 */
export async function evmHeads(node: EvmNode, finality: number | null): Promise<EvmHeads> {
  // The final block is requested first. Otherwise a new block between the two requests could make it newer than the
  // newest.
  const finalized = finality === null ? await node.block('finalized') : null;
  const latest = await node.block('latest');
  if (!latest) throw new ChainUnavailable('The node knows no newest block');
  const depth = latest.number - BigInt(finality ?? 1) + 1n;
  const final = finality === null ? finalized : await node.block(depth > 0n ? depth : 0n);
  if (!final)
    throw new ChainUnavailable(
      'The node knows no final block. If its chain never has one, set how many blocks make a block final',
    );
  // Two machines behind one URL may be at different blocks. An older newest block is safe, but a final block beyond the
  // newest may be wrong.
  if (final.number > latest.number)
    throw new ChainUnavailable(`The node calls block ${final.number} final and ${latest.number} its newest`);
  return { latest, final };
}

/**
 * Checks that blocks are still part of the chain: the node must give the same hash for their numbers. Otherwise the
 * answers before came from different chains or different machines. Throws ChainUnavailable.
 */
export async function stillThere(node: EvmNode, blocks: readonly Pick<EvmBlock, 'number' | 'hash'>[]): Promise<void> {
  for (const { number, hash } of blocks) {
    const now = await node.block(number);
    if (now?.hash !== hash)
      throw new ChainUnavailable(`Block ${number} was replaced while it was read, or the node does not have it yet`);
  }
}

/** How long a confirmation waits for others about the same block. */
const TOGETHER_MS = 10;

type BlockRef = Pick<EvmBlock, 'number' | 'hash'>;

/** Requests that all looks at open payments have in common. Concurrent looks share one request. */
interface SharedPolls {
  heads(): Promise<EvmHeads>;
  /** Like `stillThere`. The request starts after the call, never before it. */
  stillThere(blocks: readonly BlockRef[]): Promise<void>;
}

export function createSharedPolls(node: EvmNode, finality: number | null): SharedPolls {
  let asking: Promise<EvmHeads> | null = null;
  /** For each block, the running request and the request that follows it. */
  const running = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<void>>();

  const confirm = (block: BlockRef): Promise<void> => {
    const key = `${block.number}/${block.hash}`;
    const joined = waiting.get(key);
    if (joined) return joined;
    // A running request started before this call, so its answer proves nothing for this call.
    const before = running.get(key)?.catch(() => {}) ?? pause(TOGETHER_MS);
    const confirming = before.then(() => {
      waiting.delete(key);
      const check = stillThere(node, [block]).finally(() => {
        if (running.get(key) === check) running.delete(key);
      });
      running.set(key, check);
      return check;
    });
    waiting.set(key, confirming);
    return confirming;
  };

  return {
    heads() {
      // The request is shared only while it runs, so a later caller gets newer heads.
      return (asking ??= evmHeads(node, finality).finally(() => {
        asking = null;
      }));
    },
    async stillThere(blocks) {
      await Promise.all(blocks.map(confirm));
    },
  };
}

/** The cursor of a block: `<number>/<hash>`. */
export const cursorOf = ({ number, hash }: EvmBlock): string => `${number}/${hash}`;

/**
 * The block of a cursor. Rejects with ChainUnavailable if the node does not know it, and with FinalityBroken if the
 * chain has another block with its number.
 */
export async function blockAt(
  node: Pick<EvmNode, 'block'>,
  network: string,
  cursor: string,
  latest: bigint,
): Promise<EvmBlock> {
  const match = /^(\d{1,18})\/(0x[0-9a-f]{64})$/.exec(cursor);
  if (!match) throw new Error(`Not a cursor of an EVM chain: ${JSON.stringify(cursor.slice(0, 100))}`);
  const number = BigInt(match[1]!);
  if (number > latest)
    throw new ChainUnavailable(`The node is only at block ${latest}, but block ${number} was already final`);
  const block = await node.block(number);
  if (!block) throw new ChainUnavailable(`The node does not know block ${number}, which was already final`);
  if (block.hash !== match[2])
    throw new FinalityBroken(
      `Finality of ${network} was broken: block ${number} was ${match[2]} and final, and is now ${block.hash}. Check by hand what was credited since (tollgate audit)`,
    );
  return block;
}
