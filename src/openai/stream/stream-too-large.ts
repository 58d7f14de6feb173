import { tooLarge, type UpstreamFailure } from '#wire';
import { malformed } from '#wire/replies';
import type { OutputCounter } from '../chat/output-bound.ts';
import type { SseError } from './sse.ts';

/**
 * A stream is not kept, so its size on the wire is bounded only in proportion to its output. The consumer can ask
 * for much data beside a token: 20 log probabilities have 1.6 KB, for one or two letters of text.
 */
const WIRE_BYTES_PER_OUTPUT_BYTE = 4096;

/** Throws UpstreamFailure if a stream has sent more bytes than the gateway accepts for its output. */
export function checkWireBytes(received: number, replyBytesMax: number, counter: OutputCounter): void {
  if (received <= replyBytesMax + counter.bytes * WIRE_BYTES_PER_OUTPUT_BYTE) return;
  if (hasSaid(counter)) throw tooLarge(`its stream has more than ${replyBytesMax} bytes in addition to its output`);
  throw malformed(`its stream had no output in ${replyBytesMax} bytes`);
}

/**
 * The failure of a line that is longer than the gateway accepts. A long line without data, before any output, is the
 * provider's fault, because no request asks for it.
 */
export const lineTooLong = (error: SseError, counter: OutputCounter): UpstreamFailure =>
  error.isData || hasSaid(counter)
    ? tooLarge(error.message, { cause: error })
    : malformed(`its stream had no output: ${error.message}`, error);

const hasSaid = ({ bytes, otherBytes }: OutputCounter): boolean => bytes + otherBytes > 0;
