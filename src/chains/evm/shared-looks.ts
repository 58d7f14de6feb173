import { setTimeout as pause } from 'node:timers/promises';
import { evmHeads, stillThere, type EvmHeads } from './heads.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** A confirmation waits so long for others that want the same. */
const TOGETHER_MS = 10;

type Place = Pick<EvmBlock, 'number' | 'hash'>;

/** Questions that all looks at open payments ask alike: asked once for the looks of one moment. */
interface SharedLooks {
  heads(): Promise<EvmHeads>;
  /** As `stillThere`; the node is asked after the call, never before. */
  stillThere(blocks: readonly Place[]): Promise<void>;
}

export function createSharedLooks(node: EvmNode, finality: number | null): SharedLooks {
  let asking: Promise<EvmHeads> | null = null;
  /** Of each block the question that is under way, and the one after it. */
  const running = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<void>>();

  const confirm = (block: Place): Promise<void> => {
    const key = `${block.number}/${block.hash}`;
    const joined = waiting.get(key);
    if (joined) return joined;
    // A question that is under way was asked before this call: it proves nothing for it.
    const before = running.get(key)?.catch(() => {}) ?? pause(TOGETHER_MS);
    const confirming = before.then(() => {
      waiting.delete(key);
      const asked = stillThere(node, [block]).finally(() => {
        if (running.get(key) === asked) running.delete(key);
      });
      running.set(key, asked);
      return asked;
    });
    waiting.set(key, confirming);
    return confirming;
  };

  return {
    heads() {
      // Shared while it is under way: who asks later is told what is newer.
      return (asking ??= evmHeads(node, finality).finally(() => {
        asking = null;
      }));
    },
    async stillThere(blocks) {
      await Promise.all(blocks.map(confirm));
    },
  };
}
