import { GatewayError } from '#wire';
import type { ChatBody } from './chat-schema.ts';

/**
 * Throws GatewayError `unprocessable` for `plugins` of another router, because an answer without the requested
 * plugin, such as a web search, is not what the client asked for. Plugins that are switched off are allowed.
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
      `This gateway has no plugin${name}. Remove plugins. Name the tools of a service in tools: {"type": "mcp", "service": "…"}`,
      { param: `plugins[${index}]` },
    );
  }
}
