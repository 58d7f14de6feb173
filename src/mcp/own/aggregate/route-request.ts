import type { Answer, JsonRpcError, RequestMessage } from '#wire';
import { LISTS, type ListMethod } from '../../catalogue/read-page.ts';
import type { McpRequest } from '../../request/mcp-request.ts';
import { readOwnRequest } from '../../wire/own-messages.ts';
import { ERROR } from '../../wire/revisions.ts';
import { endOwn } from '../end-own.ts';
import type { AskRequest } from '../builtin/answer-ask.ts';
import type { Aggregate } from './aggregate.ts';
import type { Scope } from './scope.ts';

/**
 * Answers a request that the aggregate itself can answer, or passes it to `ask` if it asks an agent or a model. Else
 * returns the service that it names, with the request in the form for that service.
 */
export async function routeRequest(
  aggregate: Aggregate,
  { message, client, events }: Pick<McpRequest, 'message' | 'client' | 'events'>,
  scope: Scope,
  answer: Answer,
  ask: (request: AskRequest) => Promise<void>,
): Promise<{ readonly service: string; readonly message: RequestMessage } | null> {
  const { method, params } = message;
  const modern = client === 'modern';
  if (isList(method)) {
    endOwn(answer, message, aggregate.list(method, params?.['cursor'], scope, modern), modern);
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
      endOwn(answer, message, { result: aggregate.find(resolved.arguments, scope, modern) }, modern);
      return null;
    case 'ask': {
      const { of: kind, arguments: given } = resolved;
      const { info } = aggregate;
      await ask({ kind, name: null, arguments: given, message, client, events, info, selects: scope.selects });
      return null;
    }
    case 'service':
      return { service: resolved.service, message: readOwnRequest(resolved.text) };
  }
}

const isList = (method: string): method is ListMethod => Object.hasOwn(LISTS, method);

/** Legacy clients know a missing resource by another error code. */
function legacyError(method: string, error: JsonRpcError): JsonRpcError {
  return method.startsWith('resources/') && error.code === ERROR.invalidParams
    ? { ...error, code: ERROR.resourceNotFound }
    : error;
}
