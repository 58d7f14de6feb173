import { checkHead, contentTypeOf, malformed, retryAfterOf, toFailure } from '#wire/replies';
import type { ReplyReader } from '#gateway';
import { cutEnd, type ReplyContext } from './chat-end.ts';
import { createCollector } from './chat-reply-collector.ts';
import { partialReply } from './partial-reply.ts';
import { endHere } from './whole-reply.ts';
import { endInWorker } from './whole-reply-elsewhere.ts';

/**
 * Reads a reply that is one JSON object. Nothing goes out before its end, so that a failed reply can be retried
 * elsewhere.
 */
export function createChatReplyReader(context: ReplyContext): ReplyReader {
  const collected = createCollector(context);
  let retryAfterS: number | undefined;

  return {
    head(status, headers) {
      retryAfterS = retryAfterOf(headers['retry-after']);
      checkHead(status, headers);
      if (status < 400 && contentTypeOf(headers).startsWith('text/event-stream'))
        throw malformed('it streamed a reply that was asked for in one piece');
    },
    failure: (status, body) => toFailure(status, body, retryAfterS),
    data(chunk) {
      collected.push(chunk);
      return null;
    },
    get kept() {
      return collected.bytes;
    },
    endElsewhere: () => endInWorker(context, collected, 'completion'),
    end: () => endHere(context, collected.take(), 'completion'),
    cut: (cut) => cutEnd(context, partialReply(context, collected.take()), cut),
  };
}
