import { WholeHeadReader } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#gateway';
import { cutEnd, type ReplyContext } from './chat-end.ts';
import { Collector } from './chat-reply-collector.ts';
import { partialReply } from './partial-reply.ts';
import { endHere } from './whole-reply.ts';
import { endInWorker } from './whole-reply-elsewhere.ts';

/**
 * Reads a reply that is one JSON object. Nothing goes out before its end, so that a failed reply can be retried
 * elsewhere.
 */
export class ChatReplyReader extends WholeHeadReader implements ReplyReader {
  readonly #context: ReplyContext;
  readonly #collected: Collector;

  constructor(context: ReplyContext) {
    super();
    this.#context = context;
    this.#collected = new Collector(context);
  }

  data(chunks: readonly Uint8Array[]): null {
    for (const chunk of chunks) this.#collected.push(chunk);
    return null;
  }

  get kept(): number {
    return this.#collected.bytes;
  }

  endElsewhere(): Promise<ReplyEnd> | null {
    return endInWorker(this.#context, this.#collected, 'completion');
  }

  end(): ReplyEnd {
    return endHere(this.#context, this.#collected.take(), 'completion');
  }

  cut(cut: Cut): ReplyEnd {
    return cutEnd(this.#context, partialReply(this.#context, this.#collected.take()), cut);
  }
}
