import { type Answer, GatewayError, resultText } from '#wire';
import { endOwn } from '../aggregate/standalone-door.ts';
import { quote } from '../../wire/quote.ts';
import { ERROR } from '../../wire/revisions.ts';
import type { Knock, Standalone } from '../../call/standalone.ts';
import type { AnswerAsk } from './answer-ask.ts';
import type { PrimitiveServerOf } from './primitive-server.ts';

export interface StandaloneFrontDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
}

/** Answers requests that stand alone, modern or bare, to an agent or a model. Throws GatewayError. */
export function createStandaloneFront({ serverOf, answerAsk }: StandaloneFrontDeps) {
  return async (
    service: string,
    { message, client, events }: Standalone,
    knock: Knock,
    answer: Answer,
  ): Promise<void> => {
    const server = serverOf(service, knock.caller);
    if (server === null) throw new GatewayError('not_found', `There is no ${quote(service)} any more`);
    const { idText, method, params } = message;
    const modern = client === 'modern';
    const own = (result: string) => answer.end(resultText(idText, result), 200);
    switch (method) {
      case 'server/discover':
        return own(server.discoverResult());
      case 'ping':
        return own('{}');
      case 'tools/list':
        return own(server.listResult(modern));
      case 'tools/call': {
        const fault = server.toolFault(message);
        if (fault) return endOwn(answer, message, { error: fault }, modern);
        const { kind, name, info } = server;
        return answerAsk(
          { kind, name, arguments: params?.['arguments'], message, client, events, info },
          knock,
          answer,
        );
      }
      default:
        return endOwn(
          answer,
          message,
          { error: { code: ERROR.methodNotFound, message: `There are only tools here, and no ${quote(method)}` } },
          modern,
        );
    }
  };
}
