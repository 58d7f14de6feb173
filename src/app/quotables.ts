import { GatewayError, isObject } from '#wire';
import type { TargetRequest, Quotable, TargetAdapter, TargetAdapters } from '#gateway';
import { quotableImages, quotableVideos } from '#media';
import { quotableModel } from '#openai';
import type { Middle } from './middle.ts';

const SILENT: Omit<TargetRequest, 'turns' | 'arguments'> = {
  contextId: null,
  taskId: null,
  maxTokens: null,
  stream: false,
};

/** Readers of calls that can be quoted, by the name of the primitive. */
export function quotables({ config, now }: Pick<Middle, 'config' | 'now'>, targets: () => Partial<TargetAdapters>) {
  return {
    model: quotableModel({ config, now }),
    image: quotableImages(config),
    video: quotableVideos(config),
    tool: bridged('tool', () => targets().mcp),
    agent: bridged('agent', () => targets().a2a),
  } satisfies Record<string, Quotable>;
}

/** Quotes a tool or an agent. Its price does not depend on the content of the request, so a sample text is used. */
function bridged(member: 'tool' | 'agent', targetOf: () => TargetAdapter | undefined): Quotable {
  return async (body, { caller, requestId }) => {
    const name = body[member];
    if (typeof name !== 'string' || name === '')
      throw new GatewayError('invalid_request', `${member} must be the name of the ${member}`, { param: member });
    const target = targetOf();
    if (target === undefined) throw new GatewayError('not_found', `There are no ${member}s here`, { param: member });
    const given = body['arguments'];
    const ask: TargetRequest = {
      ...SILENT,
      turns: [{ role: 'user', parts: [{ kind: 'text', text: 'A quote' }] }],
      arguments: member === 'tool' ? (isObject(given) ? given : {}) : null,
    };
    return target.toCall(name, ask, { caller, requestId, traceparent: null, wantsReceipt: false });
  };
}
