import { OWN_TURN_BYTES } from '#wire';
import { WholeHeadReader } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#call';
import { outputBytesMax, runDiscountOf, firstBytes } from '../chat/reply/output-bound.ts';
import {
  asCut,
  type ReplyContext,
  type ChatResult,
  costOfParts,
  tierOf,
  withoutAnswer,
} from '../chat/reply/chat-end.ts';
import { Collector } from '../chat/reply/chat-reply-reader.ts';
import { nativeNames, partialElsewhere, partialOf, type PartialReply } from '../chat/reply/partial-reply.ts';
import { parseReply, readReply } from '../chat/reply/whole-reply.ts';
import { OutputSize } from './output-size.ts';
import type { NativeDecoder, NativeEnd } from './passthrough.ts';
import { type ChatUsage, cutUsage, type Output, overCapUsage, readUsage } from '../chat/reply/chat-usage.ts';

export class NativeReplyReader extends WholeHeadReader implements ReplyReader<ChatResult, never> {
  readonly #context: ReplyContext;
  readonly #decoder: NativeDecoder;
  readonly #collected: Collector;

  constructor(context: ReplyContext, decoder: NativeDecoder) {
    super();
    this.#context = context;
    this.#decoder = decoder;
    this.#collected = new Collector(context);
  }

  data(chunks: readonly Uint8Array[]): null {
    this.#collected.push(chunks);
    return null;
  }

  get storedBytes(): number {
    return this.#collected.bytes;
  }

  endElsewhere(): Promise<ReplyEnd<ChatResult>> | null {
    if (this.#collected.bytes <= OWN_TURN_BYTES) return null;
    const bytes = this.#collected.take();
    return readReply(bytes).then((reply) => this.#endOf(bytes, reply));
  }

  end(): ReplyEnd<ChatResult> {
    const bytes = this.#collected.take();
    return this.#endOf(bytes, parseReply(bytes));
  }

  #endOf(bytes: Buffer, reply: Record<string, unknown>): ReplyEnd<ChatResult> {
    const decoder = this.#decoder;
    const output = new OutputSize();
    decoder.takeWhole(reply, output);
    const { texts, otherBytes, pictures, soundBytes, textBytes: outputBytes } = output;
    const size = { outputBytes, otherBytes, pictures, soundBytes, before: null, decoder };
    const bytesMax = outputBytesMax(this.#context.budget);
    if (outputBytes > bytesMax && outputBytes - runDiscountOf(texts) > bytesMax) {
      const writtenText = firstBytes(partialOf({ bytes, names: this.#names }).texts.join(''), bytesMax);
      return nativeOverCap(this.#context, { ...size, write: (end) => decoder.cutWhole(writtenText, end) });
    }
    return nativeEnd(this.#context, { ...size, write: (end) => decoder.whole(bytes.toString('utf8'), reply, end) });
  }

  cutElsewhere(cut: Cut): Promise<ReplyEnd<ChatResult>> | null {
    const reading = partialElsewhere(this.#context, this.#collected, this.#names, cut.rest);
    return reading?.then((partial) => this.#cutAt(partial, cut)) ?? null;
  }

  cut(cut: Cut): ReplyEnd<ChatResult> {
    return this.#cutAt(partialOf({ bytes: this.#collected.take(), names: this.#names, rest: cut.rest }), cut);
  }

  #cutAt({ texts, claim, ...output }: PartialReply, cut: Cut): ReplyEnd<ChatResult> {
    const decoder = this.#decoder;
    if (claim !== null) decoder.takeUsage(claim);
    const write: NativeProduced['write'] = (end) => decoder.cutWhole(texts.join(''), end);
    return nativeCut(this.#context, { decoder, before: null, ...output, write }, cut, false);
  }

  get #names() {
    return nativeNames(this.#decoder.usageMember);
  }
}

export interface NativeProduced extends Output {
  readonly decoder: NativeDecoder;
  /** Bytes that go out before the end. */
  readonly before: Uint8Array | null;
  readonly write: (end: NativeEnd) => string;
}

/** The end of a complete reply. Throws UpstreamFailure if the provider sent neither output nor a finish reason. */
export function nativeEnd(context: ReplyContext, produced: NativeProduced): ReplyEnd<ChatResult> {
  const { decoder, outputBytes, otherBytes } = produced;
  if (decoder.finish === null && outputBytes + otherBytes === 0) throw withoutAnswer();
  return toEnd(context, produced, readUsage(decoder.claim, context, produced), { outcome: 'complete' });
}

export function nativeCut(
  context: ReplyContext,
  produced: NativeProduced,
  cut: Cut,
  streams: boolean,
): ReplyEnd<ChatResult> {
  const usage = cutUsage(produced.decoder.claim, context, shownBy(produced), cut);
  const outcome = usage.usage === null ? 'free' : 'cut';
  const end = toEnd(context, produced, usage, { outcome, estimated: usage.estimated, isBroken: true });
  return asCut(end, produced, cut, streams);
}

/**
 * The end of a reply that ran past its budget. If the cap was sent, this is the provider's fault. Otherwise the
 * reply counts as cut.
 */
export function nativeOverCap(context: ReplyContext, produced: NativeProduced): ReplyEnd<ChatResult> {
  const isFault = context.budget.keptBy === 'provider';
  if (isFault) {
    const { usage, estimated, flags } = overCapUsage(produced.decoder.claim, context, shownBy(produced));
    return toEnd(context, produced, { ...usage, flags }, { outcome: 'over_cap', estimated, isBroken: true });
  }
  const usage = cutUsage(produced.decoder.claim, context, shownBy(produced), null);
  return toEnd(context, produced, usage, { outcome: 'cut', estimated: usage.estimated, isBroken: true });
}

const shownBy = ({ decoder: { webSearches }, ...output }: NativeProduced): Output => ({ ...output, webSearches });

interface EndKind {
  readonly outcome: ReplyEnd['outcome'];
  readonly estimated?: boolean;
  readonly isBroken?: boolean;
}

const FINISH_REASON_MAX = 64;

function toEnd(
  context: ReplyContext,
  { decoder, before, write }: NativeProduced,
  { usage, flags, shownUsage, details }: ChatUsage,
  { outcome, estimated = false, isBroken = false }: EndKind,
): ReplyEnd<ChatResult> {
  const { claim } = decoder;
  const serviceTier = tierOf(decoder.serviceTier, null);
  const isCorrected =
    claim?.['prompt_tokens'] !== shownUsage['prompt_tokens'] ||
    claim?.['completion_tokens'] !== shownUsage['completion_tokens'];
  const result: ChatResult = {
    before,
    body: {},
    usage: shownUsage,
    ...costOfParts(context, usage, serviceTier),
    native: (cost, cut) => write({ cost, usage: shownUsage, isCorrected, cut, isBroken }),
  };
  const finishReason = decoder.finish?.slice(0, FINISH_REASON_MAX) ?? null;
  return { usage, outcome, estimated, finishReason, flags, result, details, serviceTier };
}
