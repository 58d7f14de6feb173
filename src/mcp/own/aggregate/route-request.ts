import type { ClientAnswer } from '#http';
import type { JsonRpcError, RequestMessage } from '#json-rpc';
import { ERROR } from '../../wire/revisions.ts';
import type { RequestContext, StatelessRequest, RunStateless } from '../../call/stateless.ts';
import { endOwn, type OwnAnswer } from '../own-answer.ts';
import type { AnswerAsk, AskRequest } from '../builtin/answer-ask.ts';
import type { Aggregate } from './aggregate.ts';
import type { AggregateListen } from './listen.ts';
import { OWN } from './own-tools.ts';
import { isListMethod } from '../../shapes/lists.ts';
import type { McpRequest } from '../../request/mcp-request.ts';
import { readOwnRequest } from '../../wire/own-messages.ts';
import type { Scope } from './tables.ts';

interface AggregateStatelessDeps {
  readonly aggregate: Aggregate;
  readonly toService: RunStateless;
  readonly listen: AggregateListen;
  readonly answerAsk: AnswerAsk;
}

export function createAggregateStateless({ aggregate, toService, listen, answerAsk }: AggregateStatelessDeps) {
  return async (
    selection: string | null,
    request: StatelessRequest,
    context: RequestContext,
    answer: ClientAnswer,
  ): Promise<void> => {
    const { message, client, capabilities, events } = request;
    const { method, params } = message;
    const modern = client === 'modern';
    const scope = aggregate.scope(context.caller, selection);
    if (method === 'server/discover') return endOwn(answer, message, { result: aggregate.discoverResult() }, modern);
    if (method === 'ping') return endOwn(answer, message, { result: '{}' }, modern);
    if (method === 'subscriptions/listen')
      return events ? listen(message, scope, context, answer) : endOwn(answer, message, NO_EVENTS, modern);
    const one = await routeRequest(aggregate, request, scope, answer, (ask) =>
      answerAsk({ ...ask, capabilities }, context, answer),
    );
    if (one === null) return;
    const unwrapped = method === 'tools/call' && params?.['name'] === OWN.call;
    await toService(one.service, { ...request, message: one.message, unwrapped }, context, answer, (text) =>
      aggregate.toClient(text, one.service),
    );
  };
}

const NO_EVENTS: OwnAnswer = {
  error: {
    code: ERROR.invalidRequest,
    message: 'The answer to subscriptions/listen is an event stream. Send Accept: application/json, text/event-stream',
  },
};

/**
 * Answers a request that the aggregate itself can answer, or passes it to `ask` if it asks an agent or a model. Else
 * returns the service that it names, with the request in the form for that service.
 */
export async function routeRequest(
  aggregate: Aggregate,
  { message, client, events }: Pick<McpRequest, 'message' | 'client' | 'events'>,
  scope: Scope,
  answer: ClientAnswer,
  ask: (request: Omit<AskRequest, 'capabilities'>) => Promise<void>,
): Promise<{ readonly service: string; readonly message: RequestMessage } | null> {
  const { method, params } = message;
  const modern = client === 'modern';
  if (isListMethod(method)) {
    endOwn(answer, message, await aggregate.list(method, params?.['cursor'], scope, modern), modern);
    return null;
  }
  const resolved = aggregate.resolve(message, scope);
  switch (resolved.kind) {
    case 'refused': {
      const error = client === 'legacy' ? legacyError(method, resolved.error) : resolved.error;
      endOwn(answer, message, { error }, modern);
      return null;
    }
    case 'find':
      endOwn(answer, message, { result: await aggregate.find(resolved.arguments, scope, modern) }, modern);
      return null;
    case 'ask': {
      const { bridgedKind: kind, arguments: args } = resolved;
      const { info } = aggregate;
      const { selects } = scope;
      await ask({ kind, name: null, arguments: args, message, client, events, info, selects });
      return null;
    }
    case 'service':
      return { service: resolved.service, message: readOwnRequest(resolved.text) };
  }
}

/** Legacy clients know a missing resource by another error code. */
function legacyError(method: string, error: JsonRpcError): JsonRpcError {
  return method.startsWith('resources/') && error.code === ERROR.invalidParams
    ? { ...error, code: ERROR.resourceNotFound }
    : error;
}
