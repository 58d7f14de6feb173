import { UpstreamFailure } from '#wire';
import { checkHead, contentTypeOf, malformed, retryAfterOf, toFailure } from '#wire/replies';
import type { ReplyReader } from '#gateway';
import { createByteOutput } from './byte-output.ts';
import { completeEnd, cutEnd, overCapEnd, type ReplyContext } from '../reply/chat-end.ts';
import { Collector } from '../reply/chat-reply-collector.ts';
import { createChunkRewriter } from './chunk-rewriter.ts';
import { createOutputTally } from './output-tally.ts';
import { partialReply } from '../reply/partial-reply.ts';
import { joined } from './joined.ts';
import { createSseScanner, SseError } from './sse.ts';
import { checkWireBytes, lineTooLong } from './stream-too-large.ts';
import { asChunk, endHere } from '../reply/whole-reply.ts';
import { endInWorker } from '../reply/whole-reply-elsewhere.ts';

export interface StreamReaderOptions {
  /** Parse every chunk, as a reference for the fast path. */
  readonly parseAll?: boolean;
}

/**
 * Reads a streamed reply. Chunks go out as they arrive, with our id and the service's name. The chunk that finishes
 * is held until `end`, because usage may follow it. So the last chunk has both the finish reason and the usage.
 */
export function createChatStreamReader(
  context: ReplyContext,
  { parseAll = false }: StreamReaderOptions = {},
): ReplyReader {
  const output = createByteOutput();
  const tally = createOutputTally(context.budget);
  const rewriter = createChunkRewriter(context, tally, output, parseAll);
  const scanner = createSseScanner(rewriter.rewrite, undefined, rewriter.rewriteKnown);
  let received = 0;
  let failed = false;
  let retryAfterS: number | undefined;
  /** Set when the provider answers a request for a stream with one JSON object. */
  let whole: Collector | null = null;

  const isOver = (): boolean => rewriter.done || rewriter.overCap;

  /** Runs `read`. Throws UpstreamFailure if the stream is broken. */
  function reading(read: () => void): void {
    try {
      read();
    } catch (error) {
      const failure = error instanceof SseError ? lineTooLong(error, tally) : error;
      failed = !(failure instanceof UpstreamFailure && failure.tooLarge);
      throw failure;
    }
  }

  return {
    get finished() {
      return isOver();
    },
    head(status, headers) {
      retryAfterS = retryAfterOf(headers['retry-after']);
      checkHead(status, headers);
      if (contentTypeOf(headers).includes('json')) whole = new Collector(context);
    },
    failure: (status, body) => toFailure(status, body, retryAfterS),
    data(chunks) {
      if (whole) {
        for (const chunk of chunks) whole.push(chunk);
        return null;
      }
      if (isOver()) return null;
      const arrived = joined(chunks);
      received += arrived.length;
      // Our id and names are often longer than the provider's.
      output.expected = arrived.length + (arrived.length >> 1) + 64;
      reading(() => scanner.push(arrived));
      checkWireBytes(received, context.replyBytesMax, tally);
      return output.take();
    },
    get kept() {
      return whole?.bytes;
    },
    endElsewhere: () => whole && endInWorker(context, whole, 'chunk'),
    end() {
      if (whole) return endHere(context, whole.take(), 'chunk');
      if (!isOver()) reading(() => scanner.end());
      if (rewriter.overCap) return overCapEnd(context, rewriter.produced('length'));
      if (rewriter.chunks === 0) throw malformed('it ended the stream without a reply');
      if (!rewriter.finishHeld && !rewriter.done) throw malformed('it ended the stream before the reply was complete');
      return completeEnd(context, rewriter.produced('stop'));
    },
    cut(cut) {
      if (failed) throw malformed('its stream was broken before it was cut');
      if (whole) return cutEnd(context, asChunk(partialReply(context, whole.take())), cut);
      const produced = rewriter.produced('length');
      return rewriter.overCap ? overCapEnd(context, produced) : cutEnd(context, produced, cut);
    },
  };
}
