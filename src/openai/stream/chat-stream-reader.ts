import { contentTypeOf, lastObjectInRest, malformed } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#call';
import {
  type ChatPiece,
  type ChatResult,
  completeEnd,
  cutEnd,
  overCapEnd,
  type ReplyContext,
} from '../chat/reply/chat-end.ts';
import { Collector, endInWorker } from '../chat/reply/chat-reply-reader.ts';
import {
  CHAT_NAMES,
  partialCompletion,
  partialElsewhere,
  partialOf,
  type PartialReply,
} from '../chat/reply/partial-reply.ts';
import { asChunk, endHere } from '../chat/reply/whole-reply.ts';
import { ChunkBytes, type ChunkOutput } from './chunk-output.ts';
import { ChunkRewriter } from './chunk-rewriter.ts';
import { EventStreamReader } from './event-stream-reader.ts';

export interface StreamReaderOptions {
  /** Parse every chunk, as a reference for the fast path. */
  readonly parseAll?: boolean;
}

export const createChatStreamReader = (context: ReplyContext, options?: StreamReaderOptions): ReplyReader<ChatResult> =>
  createChatStreamDecoder(context, new ChunkBytes(), options);

/** A reader of a streamed reply, whose chunks go to `output`. */
export function createChatStreamDecoder<D extends ChatPiece>(
  context: ReplyContext,
  output: ChunkOutput<D>,
  { parseAll = false }: StreamReaderOptions = {},
): ReplyReader<ChatResult, D> {
  return new ChatStreamReader(context, output, parseAll);
}

/**
 * Reads a streamed reply. Chunks go out as they arrive, with our id and the service's name. The chunk that finishes
 * is held until `end`, because usage may follow it. So the last chunk has both the finish reason and the usage.
 */
class ChatStreamReader<D extends ChatPiece> extends EventStreamReader<D> implements ReplyReader<ChatResult, D> {
  readonly #output: ChunkOutput<D>;
  readonly #rewriter: ChunkRewriter;
  /** Set when the provider answers a request for a stream with one JSON object. */
  #whole: Collector | null = null;

  constructor(context: ReplyContext, output: ChunkOutput<D>, parseAll: boolean) {
    super(context, output);
    this.#output = output;
    const isParsed = parseAll || context.continuation !== undefined;
    this.#rewriter = new ChunkRewriter(context, this.counter, output, isParsed);
  }

  get finished(): boolean {
    return this.#rewriter.done || this.#rewriter.overCap;
  }

  get storedBytes(): number | undefined {
    return this.#whole?.bytes;
  }

  override head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    super.head(status, headers);
    if (contentTypeOf(headers).includes('json')) this.#whole = new Collector(this.context);
  }

  data(chunks: readonly Uint8Array[]): D | null {
    if (!this.#whole) {
      const piece = this.read(chunks);
      if (piece !== null) this.context.continuation?.took();
      return piece;
    }
    this.#whole.push(chunks);
    return null;
  }

  endElsewhere(): Promise<ReplyEnd<ChatResult>> | null {
    return this.#whole && endInWorker(this.context, this.#whole, 'chunk');
  }

  end(): ReplyEnd<ChatResult> {
    const { context } = this;
    const rewriter = this.#rewriter;
    if (this.#whole) return this.#withChunk(endHere(context, this.#whole.take(), 'chunk'));
    this.readRest();
    if (rewriter.overCap) return overCapEnd(context, rewriter.produced('length'));
    if (rewriter.chunks === 0) throw malformed('it ended the stream without a reply');
    if (!rewriter.finishHeld && !rewriter.done) throw malformed('it ended the stream before the reply was complete');
    return this.flagged(completeEnd(context, rewriter.produced('stop')));
  }

  cutElsewhere(cut: Cut): Promise<ReplyEnd<ChatResult>> | null {
    this.refuseBroken();
    const partial = this.#whole && partialElsewhere(this.context, this.#whole, CHAT_NAMES, cut.rest);
    return partial?.then((came) => this.#cutAt(came, cut)) ?? null;
  }

  cut(cut: Cut): ReplyEnd<ChatResult> {
    const { context } = this;
    this.refuseBroken();
    if (this.#whole)
      return this.#cutAt(partialOf({ bytes: this.#whole.take(), names: CHAT_NAMES, rest: cut.rest }), cut);
    this.#rewriter.takeClaim(lastObjectInRest(cut.rest, 'usage'));
    const produced = this.#rewriter.produced('length');
    return this.#rewriter.overCap ? overCapEnd(context, produced) : cutEnd(context, produced, cut, true);
  }

  #cutAt(came: PartialReply, cut: Cut): ReplyEnd<ChatResult> {
    return this.#withChunk(cutEnd(this.context, asChunk(partialCompletion(this.context, came)), cut, true));
  }

  /** The end of a reply that came as one JSON object, with what the output makes of its only chunk. */
  #withChunk(end: ReplyEnd<ChatResult>): ReplyEnd<ChatResult> {
    this.#output.last(end.result.body);
    return { ...end, result: { ...end.result, before: this.#output.take() } };
  }

  protected takeKnown(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#rewriter.rewriteKnown(bytes, start, end, framed);
  }

  protected readEvent(bytes: Buffer, start: number, end: number): boolean {
    const isMore = this.#rewriter.rewrite(bytes, start, end);
    this.hasContent = this.#rewriter.hasContent;
    return isMore;
  }
}
