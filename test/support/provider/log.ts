import type { IncomingHttpHeaders } from 'node:http';
import type { Behaviour } from './behaviour.ts';
import type { SendEnd } from './send-reply.ts';

/** One request as the provider saw it. It has all facts that are needed to recompute its cost. */
export interface LoggedCall {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  /** The unparsed request body. */
  readonly text: string;
  /** The parsed request body, or the text if it isn't JSON. */
  readonly body: unknown;
  readonly behaviour: Behaviour;
  readonly promptTokens: number;
  /** Completion tokens of the whole answer without any fault. */
  plannedTokens: number;
  /** Completion tokens whose last byte was written to the socket. */
  completionTokens: number;
  /** UTF-8 bytes of their text. */
  textBytes: number;
  /** JSON text of each usage that was written completely, in order. */
  readonly usages: string[];
  finishReason: string | null;
  /** Bytes of the body that were written to the socket. */
  bytes: number;
  end: SendEnd | 'error_status' | null;
  /** Settles when the provider has finished the request. */
  readonly ended: Promise<void>;
}
