import type { IncomingHttpHeaders } from 'node:http';
import type { Behaviour } from './behaviour.ts';
import type { SendEnd } from './send-reply.ts';

/** One request as the provider saw it: enough to recompute what it should have cost. */
export interface LoggedCall {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  /** The request body as it came. */
  readonly text: string;
  /** The parsed request body; the text where it was no JSON. */
  readonly body: unknown;
  readonly behaviour: Behaviour;
  readonly promptTokens: number;
  /** Completion tokens of the whole answer, had nothing gone wrong. */
  plannedTokens: number;
  /** Completion tokens whose last byte was handed to the socket. */
  completionTokens: number;
  /** UTF-8 bytes of their text. */
  textBytes: number;
  /** JSON text of each usage that was handed over whole, in order. */
  readonly usages: string[];
  finishReason: string | null;
  /** Bytes of body handed to the socket. */
  bytes: number;
  end: SendEnd | 'error_status' | null;
  /** Settles when the provider has nothing more to do with it. */
  readonly ended: Promise<void>;
}
