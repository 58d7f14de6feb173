import { setTimeout as pause } from 'node:timers/promises';
import { evmHeads, stillThere, type EvmHeads } from './heads.ts';
import type { EvmBlock, EvmNode } from './rpc.ts';

/** How long a confirmation waits for others about the same block. */
const TOGETHER_MS = 10;

type Place = Pick<EvmBlock, 'number' | 'hash'>;

/** Requests that all looks at open payments have in common. Concurrent looks share one request. */
interface SharedPolls {
  heads(): Promise<EvmHeads>;
  /** Like `stillThere`. The request starts after the call, never before it. */
  stillThere(blocks: readonly Place[]): Promise<void>;
}

export function createSharedPolls(node: EvmNode, finality: number | null): SharedPolls {
  let asking: Promise<EvmHeads> | null = null;
  /** For each block, the running request and the request that follows it. */
  const running = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<void>>();

  const confirm = (block: Place): Promise<void> => {
    const key = `${block.number}/${block.hash}`;
    const joined = waiting.get(key);
    if (joined) return joined;
    // A running request started before this call, so its answer proves nothing for this call.
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
