import { GatewayError } from '#wire';
import { quote } from '../../wire/quote.ts';
import type { RunStateless } from '../../call/stateless.ts';
import { endOwn } from '../end-own.ts';
import type { AnswerAsk } from './answer-ask.ts';
import type { PrimitiveServerOf } from './primitive-server.ts';
import { onlyTools } from './builtin-transport.ts';

interface BuiltinStatelessDeps {
  readonly serverOf: PrimitiveServerOf;
  readonly answerAsk: AnswerAsk;
}

/** Answers requests without a session, modern or bare, to an agent or a model. Throws GatewayError. */
export function createBuiltinStateless({ serverOf, answerAsk }: BuiltinStatelessDeps): RunStateless {
  return async (service, { message, client, events }, context, answer) => {
    const server = serverOf(service, context.caller);
    if (server === null) throw new GatewayError('not_found', `${quote(service)} no longer exists`);
    const { method, params } = message;
    const modern = client === 'modern';
    switch (method) {
      case 'server/discover':
        return endOwn(answer, message, { result: server.discoverResult() }, modern);
      case 'ping':
        return endOwn(answer, message, { result: '{}' }, modern);
      case 'tools/list':
        return endOwn(answer, message, { result: server.listResult(modern) }, modern);
      case 'tools/call': {
        const fault = server.toolFault(message);
        if (fault) return endOwn(answer, message, { error: fault }, modern);
        const { kind, name, info } = server;
        const ask = { kind, name, arguments: params?.['arguments'], message, client, events, info };
        return answerAsk(ask, context, answer);
      }
      default:
        return endOwn(answer, message, { error: onlyTools(method) }, modern);
    }
  };
}
