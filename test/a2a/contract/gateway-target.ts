import { expect } from 'vitest';
import { startAgentSpine, type AgentSpine, type AgentVersion } from '../../support/a2a-agent/index.ts';
import type { SpineOptions } from '../../support/spine.ts';
import type { Target } from './contract-suite.ts';

/**
 * An agent behind a gateway, its provider's proxy and its tunnel. When all is done the gateway's books have to be
 * in order.
 */
export function gatewayTarget(
  name: string,
  speaks: AgentVersion,
  target: Omit<Target, 'name' | 'open' | 'close' | 'gateway'>,
  options: Omit<SpineOptions, 'toml'> = {},
): Target {
  let world: Promise<AgentSpine> | undefined;
  return {
    name,
    gateway: true,
    ...target,
    async open(agentOptions) {
      world ??= startAgentSpine('', options);
      const { spine, stranger, serve } = await world;
      const { agent, url } = await serve({ version: speaks, ...agentOptions });
      const as = (key: string) => ({ authorization: `Bearer ${key}` });
      return { url, headers: as(spine.key), stranger: as(stranger.key), agent, close: async () => {} };
    },
    async close() {
      const opened = await world;
      if (!opened) return;
      try {
        // Tasks that wait for their client go on, and what is locked for them stays.
        expect((await opened.spine.audit()).checks.filter(({ ok }) => !ok)).toEqual([]);
      } finally {
        await opened.close();
      }
    },
  };
}
