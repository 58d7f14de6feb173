import type { Answer } from '#wire';
import { ERROR } from '../../wire/revisions.ts';
import type { RequestContext, StatelessRequest, RunStateless } from '../../call/stateless.ts';
import { endOwn, type OwnAnswer } from '../end-own.ts';
import type { AnswerAsk } from '../builtin/answer-ask.ts';
import type { Aggregate } from './aggregate.ts';
import type { AggregateListen } from './listen.ts';
import { OWN } from './own-tools.ts';
import { routeRequest } from './route-request.ts';

interface AggregateStatelessDeps {
  readonly aggregate: Aggregate;
  readonly toService: RunStateless;
  readonly listen: AggregateListen;
  readonly answerAsk: AnswerAsk;
}

/**
 * Answers requests without a session to all services. Lists come from the catalogue. Other requests go to the one
 * service that they name.
 */
export function createAggregateStateless({ aggregate, toService, listen, answerAsk }: AggregateStatelessDeps) {
  return async (
    selection: string | null,
    request: StatelessRequest,
    context: RequestContext,
    answer: Answer,
  ): Promise<void> => {
    const { message, client, events } = request;
    const { method, params } = message;
    const modern = client === 'modern';
    const scope = aggregate.scope(context.caller, selection);
    if (method === 'server/discover') return endOwn(answer, message, { result: aggregate.discoverResult() }, modern);
    if (method === 'ping') return endOwn(answer, message, { result: '{}' }, modern);
    if (method === 'subscriptions/listen')
      return events ? listen(message, scope, context, answer) : endOwn(answer, message, NO_EVENTS, modern);
    const one = await routeRequest(aggregate, request, scope, answer, (ask) => answerAsk(ask, context, answer));
    if (one === null) return;
    const unwrapped = method === 'tools/call' && params?.['name'] === OWN.call;
    await toService(one.service, { ...request, message: one.message, unwrapped }, context, answer, (given) =>
      aggregate.toClient(given, one.service),
    );
  };
}

const NO_EVENTS: OwnAnswer = {
  error: {
    code: ERROR.invalidRequest,
    message: 'The answer to subscriptions/listen is an event stream. Send Accept: application/json, text/event-stream',
  },
};
