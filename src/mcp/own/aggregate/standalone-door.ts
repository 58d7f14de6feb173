import { type Answer, errorText, GatewayError, parseMessage, type RequestMessage, resultText } from '#wire';
import { LISTS, type ListMethod } from '../../catalogue/read-page.ts';
import { ERROR, modernStatusOf } from '../../wire/revisions.ts';
import type { Knock, Standalone, StandaloneRun } from '../../call/standalone.ts';
import type { AnswerAsk } from '../front/answer-ask.ts';
import type { Aggregate, OwnAnswer } from './aggregate.ts';
import type { AggregateListen } from './listen.ts';
import { OWN } from './own-tools.ts';
import type { Scope } from './scope.ts';

export interface AggregateDoorDeps {
  readonly aggregate: Aggregate;
  readonly toService: StandaloneRun;
  readonly listen: AggregateListen;
  readonly answerAsk: AnswerAsk;
}

/**
 * Answers requests that stand alone to all services at once: lists from what is known, everything else at the one
 * service that it names.
 */
export function createAggregateDoor({ aggregate, toService, listen, answerAsk }: AggregateDoorDeps) {
  return async (selection: string | null, request: Standalone, knock: Knock, answer: Answer): Promise<void> => {
    const { message, client } = request;
    const { idText, method, params } = message;
    const modern = client === 'modern';
    const scope = aggregate.scope(knock.caller, selection);
    if (method === 'server/discover') return answer.end(resultText(idText, aggregate.discoverResult()), 200);
    if (method === 'ping') return answer.end(resultText(idText, '{}'), 200);
    if (method === 'subscriptions/listen')
      return request.events ? listen(message, scope, knock, answer) : endOwn(answer, message, NO_EVENTS, modern);
    if (isList(method))
      return endOwn(answer, message, aggregate.list(method, params?.['cursor'], scope, modern), modern);
    await toOne(scope, request, knock, answer);
  };

  async function toOne(scope: Scope, request: Standalone, knock: Knock, answer: Answer): Promise<void> {
    const { message, client } = request;
    const modern = client === 'modern';
    const resolved = aggregate.resolve(message, scope);
    if (resolved.kind === 'refused') return endOwn(answer, message, { error: resolved.error }, modern);
    if (resolved.kind === 'find')
      return endOwn(answer, message, { result: aggregate.find(resolved.arguments, scope, modern) }, modern);
    if (resolved.kind === 'ask') {
      const { of: kind, arguments: given } = resolved;
      const { info } = aggregate;
      const ask = {
        kind,
        name: null,
        arguments: given,
        message,
        client,
        events: request.events,
        info,
        selects: scope.selects,
      };
      return answerAsk(ask, knock, answer);
    }
    const { service, text } = resolved;
    const unwrapped = message.method === 'tools/call' && message.params?.['name'] === OWN.call;
    const renamed = parseMessage(text);
    if (renamed?.kind !== 'request') throw new GatewayError('internal', 'Internal error');
    await toService(service, { ...request, message: renamed, unwrapped }, knock, answer, (given) =>
      aggregate.toClient(given, service),
    );
  }
}

const NO_EVENTS: OwnAnswer = {
  error: {
    code: ERROR.invalidRequest,
    message: 'subscriptions/listen is answered by events: send Accept: application/json, text/event-stream',
  },
};

export const isList = (method: string): method is ListMethod => Object.hasOwn(LISTS, method);

/** Writes an answer of the gateway's own. */
export function endOwn(answer: Answer, { idText }: RequestMessage, own: OwnAnswer, modern: boolean): void {
  if ('result' in own) answer.end(resultText(idText, own.result), 200);
  else answer.end(errorText(idText, own.error), modern ? modernStatusOf(own.error.code) : 200);
}
