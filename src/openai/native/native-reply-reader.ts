import { WholeHeadReader } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#gateway';
import { outputBytesMax, runDiscountOf, firstBytes } from '../chat/output-bound.ts';
import type { ReplyContext } from '../chat/chat-end.ts';
import { Collector } from '../chat/chat-reply-reader.ts';
import { partialTexts, parseReply } from '../chat/whole-reply.ts';
import { nativeCut, nativeEnd, nativeOverCap } from './native-end.ts';
import { bytesOfTexts, type NativeSpeech } from './native-speech.ts';

/** Reads a reply that is not streamed, in a wire that the client speaks too. It is kept until its end. */
export class NativeReplyReader extends WholeHeadReader implements ReplyReader {
  readonly #context: ReplyContext;
  readonly #speech: NativeSpeech;
  readonly #collected: Collector;

  constructor(context: ReplyContext, speech: NativeSpeech) {
    super();
    this.#context = context;
    this.#speech = speech;
    this.#collected = new Collector(context);
  }

  data(chunks: readonly Uint8Array[]): null {
    for (const chunk of chunks) this.#collected.push(chunk);
    return null;
  }

  get kept(): number {
    return this.#collected.bytes;
  }

  end(): ReplyEnd {
    const bytes = this.#collected.take();
    const reply = parseReply(bytes);
    const { texts, other } = this.#speech.takeWhole(reply);
    const speech = this.#speech;
    const outputBytes = bytesOfTexts(texts);
    const size = { outputBytes, otherBytes: other, before: null, speech };
    const bytesMax = outputBytesMax(this.#context.budget);
    if (outputBytes > bytesMax && outputBytes - runDiscountOf(texts) > bytesMax) {
      const said = firstBytes(partialTexts(bytes).said, bytesMax);
      return nativeOverCap(this.#context, { ...size, write: (end) => speech.cutWhole(said, end) });
    }
    return nativeEnd(this.#context, { ...size, write: (end) => speech.whole(bytes.toString('utf8'), reply, end) });
  }

  cut(cut: Cut): ReplyEnd {
    const { said, outputBytes } = partialTexts(this.#collected.take());
    const speech = this.#speech;
    const write: Parameters<typeof nativeCut>[1]['write'] = (end) => speech.cutWhole(said, end);
    return nativeCut(this.#context, { speech, before: null, outputBytes, otherBytes: 0, write }, cut);
  }
}
