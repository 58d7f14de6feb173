import { GatewayError } from '#wire';
import type { ChatBody } from './chat-schema.ts';

/**
 * Throws GatewayError `unprocessable` for `plugins` of another router that ask for something: an answer without a
 * web search that was asked for is another answer. Those that are switched off ask for nothing.
 */
export function refusePlugins({ plugins }: ChatBody): void {
  if (!Array.isArray(plugins)) return;
  for (const [index, plugin] of plugins.entries()) {
    const { id, enabled } = (typeof plugin === 'object' && plugin !== null ? plugin : {}) as {
      readonly id?: unknown;
      readonly enabled?: unknown;
    };
    if (enabled === false) continue;
    const name = typeof id === 'string' ? ` ${JSON.stringify(id.slice(0, 64).toWellFormed())}` : '';
    throw new GatewayError(
      'unprocessable',
      `There is no plugin${name} here. Leave plugins out; tools of a service are named in tools: {"type": "mcp", "service": "…"}`,
      { param: `plugins[${index}]` },
    );
  }
}
