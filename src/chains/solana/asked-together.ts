import { setTimeout as pause } from 'node:timers/promises';

/** A question waits so long for others. */
const TOGETHER_MS = 10;

/**
 * Makes one question of those that come within 10 ms. It is asked after each of them came, never before, so that its
 * answer proves for each what an answer of its own would. `ask` gets different keys, at most `keysMax`, and resolves
 * with one answer for each, in their order.
 */
export function askedTogether<Key, Answer>(
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
