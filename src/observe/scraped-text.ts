import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Registry } from 'prom-client';

/** How long a text is shared, in milliseconds. */
const STANDS_MS = 1_000;

/**
 * Makes a text once for all callers that ask while it is made and for a second after that. After a failure the next
 * caller makes it again.
 */
export function shareText(make: () => Promise<string>): () => Promise<string> {
  let shared: Promise<string> | null = null;
  return () => {
    if (shared !== null) return shared;
    const making = make();
    shared = making;
    const forget = () => {
      if (shared === making) shared = null;
    };
    making.then(() => setTimeout(forget, STANDS_MS).unref(), forget);
    return making;
  };
}

/** All metrics of a registry as text, one in each turn of the event loop. */
export async function textOf(
  registry: Pick<Registry, 'getMetricsAsArray' | 'getSingleMetricAsString'>,
): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await nextTurn();
  }
  return `${texts.join('\n\n')}\n`;
}
