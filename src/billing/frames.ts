import type { Settlement } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';
import type { Usage } from './prices/price.ts';

/* The steps of a running call, from the head of its reply to its settlement. */

/** A reply has begun. Sent again if the reply fails before its first data and another provider takes over. */
interface HeadFrame {
  readonly type: 'head';
  readonly status: number;
  /** The provider that serves. */
  readonly provider: { readonly id: string; readonly name: string };
  /** The provider goes on and bills if the client leaves, so the reply is read on. Default false. */
  readonly isReadOn?: boolean;
}

/**
 * A piece of a reply: bytes of the wire that its client speaks, or events where two wires meet. While a reply is
 * drained for its usage, billing bounds it by the size of its pieces in bytes.
 */
export interface ReplyPiece {
  readonly byteLength: number;
}

interface DataFrame<D extends ReplyPiece> {
  readonly type: 'data';
  readonly data: D;
}

/** How the gateway cut a reply that had not failed. Its client, the log and the call's record tell it by this. */
export interface CutReply {
  /**
   * The client left or cancelled; the call timed out; the reply is larger than the gateway accepts. Of a task of an
   * agent also: the gateway stops, or could not learn any more what becomes of it.
   */
  readonly reason: 'cancelled' | 'timeout' | 'too_large' | 'shutdown' | 'gave_up';
  /** The reason in words, to follow "The reply was cut: ". */
  readonly message: string;
  /** Nothing of it can be delivered. */
  readonly undelivered: boolean;
  /**
   * The error of which its client is told. `unprocessable`: it comes in place of an answer, with what the call costs.
   * `reply_cut`: an answer has begun, and ends with it.
   */
  readonly code: 'unprocessable' | 'reply_cut';
}

/** The end of a reply, as far as money and its client need it. `R`: the protocol's own result. */
export interface BilledEnd<R = unknown> {
  /** null: the provider reported none. */
  readonly usage: Usage | null;
  /**
   * `cut`: the gateway ended it early although nothing had failed; the produced part is charged. `free`: the work
   * failed according to the reply (empty, or finished with an error); nothing is charged. `over_cap`: the output
   * exceeded the cap and was cut. `pending`: the work goes on; its lock is kept until a call continues the work, its
   * end is seen, or the lock expires.
   */
  readonly outcome: 'complete' | 'cut' | 'free' | 'over_cap' | 'pending';
  /** The gateway measured the usage. The provider did not report it. */
  readonly estimated: boolean;
  /** The most that is charged, if less came than the price is for, such as a smaller image. Default: no bound. */
  readonly costMax?: MicroUsd | null;
  /** Set if the gateway cut the reply. */
  readonly cut?: CutReply | undefined;
  /** The rest of the reply in the terms of its protocol. Its route gets it back after the settlement. */
  readonly result: R;
}

/** The end of a run: that of its reply, with a price. Billing turns it into a SettledFrame. */
export interface EndFrame<R = unknown> extends BilledEnd<R | null> {
  readonly type: 'end';
  /** Id of the price of the provider that served. It is that of one of the call's candidates. */
  readonly price: string;
  readonly provider: string;
  readonly providerName: string;
  /** How the run went; stored with the generation as JSON. */
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The last frame that a protocol sees. The charge in it is durable. */
export interface SettledFrame<R = unknown> {
  readonly type: 'settled';
  readonly settlement: Settlement;
  /** The work goes on and the lock stays held. Nothing is charged yet, and the final charge is not known. */
  readonly pending?: true;
  readonly usage: Usage | null;
  readonly provider: string;
  readonly providerName: string;
  /**
   * The charges of this call and of all calls under it; absent if no call could be made under it. A call that still
   * runs counts with all that its lock holds.
   */
  readonly runCost?: MicroUsd | undefined;
  /** Compact JWS; null if no receipt was requested. */
  readonly receipt: string | null;
  /** See BilledEnd.cut. */
  readonly cut?: CutReply | undefined;
  /** See BilledEnd.result. */
  readonly result: R | null;
}

/** One step of a running call. `R`: the protocol's result; `D`: what the reply gives out. */
export type Frame<R = unknown, D extends ReplyPiece = ReplyPiece> =
  | HeadFrame
  | DataFrame<D>
  | EndFrame<R>
  | SettledFrame<R>;
