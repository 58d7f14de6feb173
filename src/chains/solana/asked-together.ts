import { setTimeout as pause } from 'node:timers/promises';

/** How long a request waits for others. */
const TOGETHER_MS = 10;

/**
 * Combines the requests of 10 ms into one. The combined request starts after each of them came, never before, so its
 * answer is as recent for each as an own answer. `ask` gets distinct keys, at most `keysMax`, and resolves with one
 * answer for each key, in the same order.
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
