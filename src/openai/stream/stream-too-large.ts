import { tooLarge, type UpstreamFailure } from '#wire';
import { malformed } from '#wire/replies';
import type { OutputTally } from './output-tally.ts';
import type { SseError } from './sse.ts';

/**
 * A stream is not kept, so its bytes on the wire are bounded only by what it says. A token comes with as much as its
 * consumer asks for: 20 log probabilities are 1.6 KB, beside a letter or two.
 */
const WIRE_BYTES_PER_OUTPUT_BYTE = 4096;

/** Throws UpstreamFailure where a stream has sent more than the gateway takes for what it has said. */
export function checkWireBytes(received: number, replyBytesMax: number, tally: OutputTally): void {
  if (received <= replyBytesMax + tally.bytes * WIRE_BYTES_PER_OUTPUT_BYTE) return;
  if (hasSaid(tally)) throw tooLarge(`its stream is longer than ${replyBytesMax} bytes beside what it says`);
  throw malformed(`its stream said nothing in ${replyBytesMax} bytes`);
}

/** The failure of a line that is longer than the gateway takes. No request asks for a long line that says nothing. */
export const lineTooLong = (error: SseError, tally: OutputTally): UpstreamFailure =>
  error.isData || hasSaid(tally)
    ? tooLarge(error.message, { cause: error })
    : malformed(`its stream said nothing: ${error.message}`, error);

const hasSaid = ({ bytes, otherBytes }: OutputTally): boolean => bytes + otherBytes > 0;
