import { type Answer, errorText } from '#wire';
import { signalOf } from '#billing/amounts';
import type { StreamQuota } from '#gateway';
import { ERROR } from '../wire/revisions.ts';
import { listenEnd } from '../wire/subscriptions.ts';
import type { RunStateless } from './stateless.ts';

/**
 * Answers requests at single services. Each `subscriptions/listen` takes one of the limited places for listening. Every
 * other method passes unchanged.
 */
export function boundedListens(toService: RunStateless, places: StreamQuota): RunStateless {
  const listen: RunStateless = async (service, request, context, answer, toClient) => {
    const { idText } = request.message;
    const place = places.take(context.caller.account);
    if (place === null) {
      const { status, message } = places.refusal();
      return answer.end(errorText(idText, { code: ERROR.server, message }), status);
    }
    const within: Answer = {
      events: (bytes) => answer.events(bytes),
      end: (...last) => answer.end(...last),
      body: (asEvent) => answer.body(asEvent),
      close() {
        if (!place.over.aborted) return answer.close();
        answer.end(listenEnd(idText), 200);
      },
    };
    try {
      await toService(
        service,
        request,
        { ...context, gone: AbortSignal.any([signalOf(context.gone), place.over]) },
        within,
        toClient,
      );
    } finally {
      place.leave();
    }
  };

  return (...asked) => {
    const [, { message }] = asked;
    return message.method === 'subscriptions/listen' ? listen(...asked) : toService(...asked);
  };
}
