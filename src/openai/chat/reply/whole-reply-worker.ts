import { BOUNDS, UpstreamFailure } from '#wire/replies';
import type { ReplyEnd } from '#call';
import type { ChatResult, ReplyContext } from './chat-end.ts';
import { completeStrictly, endHere, type ReplyForm } from './whole-reply.ts';

/**
 * The result of the thread: an end whose result has `written` instead of `body`, or the parts of an UpstreamFailure.
 * An error object would lose these parts between threads. The bytes of a reply that is `tooLarge` also come back,
 * because a part of it may be used.
 */
export type ReadReply =
  | { readonly end: ReplyEnd<ChatResult> }
  | { readonly failure: Failure; readonly bytes?: ArrayBuffer };

interface Failure extends Pick<
  UpstreamFailure,
  'message' | 'status' | 'retryable' | 'attributedTo' | 'detail' | 'tooLarge'
> {
  /** The message of its cause. */
  readonly words: string | null;
}

interface WholeReading {
  readonly context: ReplyContext;
  readonly bytes: ArrayBuffer;
  readonly form: ReplyForm;
}

export function run(args: unknown): { readonly value: ReadReply; readonly transfer: ArrayBuffer[] } {
  const { context, bytes, form } = args as WholeReading;
  try {
    const end = endHere(context, new Uint8Array(bytes), form, BOUNDS.largeReply);
    const { body, ...result } = end.result;
    body['usage'] = undefined;
    if (form === 'completion' && context.dialect === 'openai') completeStrictly(body);
    const text = JSON.stringify(body);
    const written = new TextEncoder().encode(text.slice(0, -1));
    return {
      value: { end: { ...end, result: { ...result, body: {}, written } } },
      transfer: [written.buffer],
    };
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { message, status, retryable, attributedTo, detail, tooLarge, cause } = error;
    const failure = {
      message,
      status,
      retryable,
      attributedTo,
      detail,
      tooLarge,
      words: cause instanceof Error ? cause.message : null,
    };
    return tooLarge ? { value: { failure, bytes }, transfer: [bytes] } : { value: { failure }, transfer: [] };
  }
}
