import { isObject } from '#wire';
import { GatewayError } from '#errors';
import type { Quotable } from '#call';
import type { TargetAdapters, TargetRequest } from './target-adapter.ts';

const QUOTED: Omit<TargetRequest, 'turns' | 'arguments'> = {
  contextId: null,
  taskId: null,
  maxTokens: null,
  stream: false,
};

/** Reads calls of tools and agents that can be quoted, by the name of the primitive. */
export const quotableTargets = (targets: () => Partial<TargetAdapters>) => ({
  tool: quotableTarget('tool', 'mcp', targets),
  agent: quotableTarget('agent', 'a2a', targets),
});

/** Quotes a tool or an agent. Its price does not depend on the content of the request, so a sample text is used. */
function quotableTarget(
  member: 'tool' | 'agent',
  protocol: 'mcp' | 'a2a',
  targets: () => Partial<TargetAdapters>,
): Quotable {
  return async (body, { caller, requestId }) => {
    const name = body[member];
    if (typeof name !== 'string' || name === '')
      throw new GatewayError('invalid_request', `${member} must be the name of the ${member}`, { param: member });
    const target = targets()[protocol];
    if (target === undefined) throw new GatewayError('not_found', `There are no ${member}s here`, { param: member });
    const toolArguments = body['arguments'];
    const ask: TargetRequest = {
      ...QUOTED,
      turns: [{ role: 'user', parts: [{ kind: 'text', text: 'A quote' }] }],
      arguments: member === 'tool' ? (isObject(toolArguments) ? toolArguments : {}) : null,
    };
    return target.toCall(name, ask, { caller, requestId, traceparent: null, wantsReceipt: false });
  };
}
