import { UpstreamFailure } from '#wire';
import { contentTypeOf, HeadReader, malformed } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#gateway';
import { createByteOutput } from './chunk-forms.ts';
import { completeEnd, cutEnd, overCapEnd, type ReplyContext } from '../chat/chat-end.ts';
import { Collector, endInWorker } from '../chat/chat-reply-reader.ts';
import { ChunkRewriter } from './chunk-rewriter.ts';
import { createOutputCounter, type OutputCounter } from '../chat/output-bound.ts';
import { partialReply, asChunk, endHere } from '../chat/whole-reply.ts';
import { joined, checkWireBytes, lineTooLong } from './event-stream-reader.ts';
import { createSseScanner, SseError, type SseScanner } from './sse.ts';

export interface StreamReaderOptions {
  /** Parse every chunk, as a reference for the fast path. */
  readonly parseAll?: boolean;
}

/** A reader of a streamed reply. */
export function createChatStreamReader(
  context: ReplyContext,
  { parseAll = false }: StreamReaderOptions = {},
): ReplyReader {
  return new ChatStreamReader(context, parseAll);
}

/**
 * Reads a streamed reply. Chunks go out as they arrive, with our id and the service's name. The chunk that finishes
 * is held until `end`, because usage may follow it. So the last chunk has both the finish reason and the usage.
 */
class ChatStreamReader extends HeadReader implements ReplyReader {
  readonly #context: ReplyContext;
  readonly #output = createByteOutput();
  readonly #counter: OutputCounter;
  readonly #rewriter: ChunkRewriter;
  readonly #scanner: SseScanner;
  #received = 0;
  #failed = false;
  /** Set when the provider answers a request for a stream with one JSON object. */
  #whole: Collector | null = null;

  constructor(context: ReplyContext, parseAll: boolean) {
    super();
    this.#context = context;
    this.#counter = createOutputCounter(context.budget);
    const rewriter = new ChunkRewriter(context, this.#counter, this.#output, parseAll);
    this.#rewriter = rewriter;
    this.#scanner = createSseScanner(
      (bytes, start, end, refused, isError) => rewriter.rewrite(bytes, start, end, refused, isError),
      undefined,
      (bytes, start, end) => rewriter.rewriteKnown(bytes, start, end),
    );
  }

  get finished(): boolean {
    return this.#rewriter.done || this.#rewriter.overCap;
  }

  get kept(): number | undefined {
    return this.#whole?.bytes;
  }

  override head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    super.head(status, headers);
    if (contentTypeOf(headers).includes('json')) this.#whole = new Collector(this.#context);
  }

  data(chunks: readonly Uint8Array[]): Uint8Array | null {
    if (this.#whole) {
      for (const chunk of chunks) this.#whole.push(chunk);
      return null;
    }
    if (this.finished) return null;
    const arrived = joined(chunks);
    this.#received += arrived.length;
    // Our id and names are often longer than the provider's.
    this.#output.expected = arrived.length + (arrived.length >> 1) + 64;
    this.#reading(() => this.#scanner.push(arrived));
    checkWireBytes(this.#received, this.#context.replyBytesMax, this.#counter);
    return this.#output.take();
  }

  endElsewhere(): Promise<ReplyEnd> | null {
    return this.#whole && endInWorker(this.#context, this.#whole, 'chunk');
  }

  end(): ReplyEnd {
    const context = this.#context;
    const rewriter = this.#rewriter;
    if (this.#whole) return endHere(context, this.#whole.take(), 'chunk');
    if (!this.finished) this.#reading(() => this.#scanner.end());
    if (rewriter.overCap) return overCapEnd(context, rewriter.produced('length'));
    if (rewriter.chunks === 0) throw malformed('it ended the stream without a reply');
    if (!rewriter.finishHeld && !rewriter.done) throw malformed('it ended the stream before the reply was complete');
    return completeEnd(context, rewriter.produced('stop'));
  }

  cut(cut: Cut): ReplyEnd {
    const context = this.#context;
    if (this.#failed) throw malformed('its stream was broken before it was cut');
    if (this.#whole) return cutEnd(context, asChunk(partialReply(context, this.#whole.take())), cut);
    const produced = this.#rewriter.produced('length');
    return this.#rewriter.overCap ? overCapEnd(context, produced) : cutEnd(context, produced, cut);
  }

  /** Runs `read`. Throws UpstreamFailure if the stream is broken. */
  #reading(read: () => void): void {
    try {
      read();
    } catch (error) {
      const failure = error instanceof SseError ? lineTooLong(error, this.#counter) : error;
      this.#failed = !(failure instanceof UpstreamFailure && failure.tooLarge);
      throw failure;
    }
  }
}
