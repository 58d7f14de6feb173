import type { FastifyContextConfig, FastifyRequest } from 'fastify';
import type { ReplySink, MoreMemory } from '#http';
import type { GatewayError } from '#errors';
import type { CancelSignal } from '#billing/amounts';
import type { Caller } from '#accounts';
import type { ReplyEncoder, StartedChat } from '../chat/reply/chat-reply.ts';
import type { ChatBody } from '../chat/chat-schema.ts';
import type { Passthrough } from '../native/passthrough.ts';
import type { WireEncoder } from './wire-encoder.ts';
import type { WireRequest } from './wire-request.ts';

export interface ChatWire<B> {
  readonly path: string;
  readonly schema: { readonly properties: object };
  /** The name of the thing that is paid for, such as `A message`. */
  readonly noun: string;
  readonly answerSchema: object;
  readonly streamType: string;
  /** One event of a stream, or one line. Default: an object with a `type`. */
  readonly eventSchema?: object;
  /** Schema of its errors. Default: that of chat. */
  readonly errorSchema?: object;
  readonly described: {
    readonly summary: string;
    readonly operationId: string;
    readonly description: string;
  };
  /** The part of a request that stands in its address. Absent: none. */
  readonly address?: WireAddress;
  /** The wire's own name of a chat field that was dropped. */
  readonly nameOf: (chatField: string) => string;
  /** The wire as providers speak it; null if no provider speaks it. */
  readonly native: Passthrough | null;
  /**
   * Replaces what a request refers to by its content, which `memory` counts. The request is then translated by the
   * returned wire. Rejects with GatewayError. Absent: requests refer to nothing.
   */
  resolve?(requestBody: B, bytes: Buffer, caller: Caller, memory: MoreMemory): Promise<Resolved<B>>;
  /** Throws GatewayError. */
  translate(body: B, request: WireRequest): Translation;
  /** Whether the request names tools that this gateway calls for the model. Their keys are for the gateway only. */
  runsHere(body: B, request: WireRequest): boolean;
  toError(
    error: GatewayError,
    httpRequest: Pick<FastifyRequest, 'id' | 'headers' | 'originalUrl'>,
  ): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown };
}

/** A part of a request that stands in its address instead of its body. */
export interface WireAddress {
  /** Schemas of the parameters of the path and of the query. */
  readonly schema: { readonly params: object; readonly querystring?: object };
  /** Further config of the routes: what clients append to a base URL, and the paths with errors of this wire. */
  readonly config: Pick<FastifyContextConfig, 'clientsAppend' | 'refusesBelow'>;
  /** The parsed body with what the address says, before the schema checks it. Throws GatewayError. */
  place(parsed: unknown, request: FastifyRequest): unknown;
  /** That part as a text. A repeat of a request has the same. */
  text(request: FastifyRequest): string;
}

/** A request of another wire as a chat request. */
export interface TranslatedBody {
  readonly body: ChatBody;
  /** Names of the fields and things in the request that no provider gets. */
  readonly dropped: readonly string[];
  /** Why only a provider that speaks the wire can serve the request. Absent or null: others can. */
  readonly untranslatable?: GatewayError | null;
}

export interface Translation extends TranslatedBody {
  /** The encoder for the reply of the call with this id. `model`: the name that the reply gives its model. */
  encoder(callId: string, model: string): WireEncoder;
  /** Changes the form of a reply, after `encoder` has written it. Default: it stays. */
  readonly reframed?: (encoder: ReplyEncoder) => ReplyEncoder;
  /**
   * The ids of tool calls carry members for the provider: those of the call, or also those of its message. Default:
   * they are the provider's ids.
   */
  readonly idsCarry?: 'call' | 'message';
  /** The reply is made in the background. Default: the client gets it. */
  readonly background?: InBackground;
  /** Keeps the reply for later requests while it is written. Default: it is not kept. */
  readonly keeps?: (
    startedCall: StartedChat,
    client: ReplySink,
    onError: (error: unknown) => void,
  ) => Promise<KeepsReply>;
}

export interface InBackground {
  /** Aborts when the call has to stop. The disconnecting client does not stop it. */
  readonly gone: CancelSignal;
  /** Called when the money for the call is locked. */
  readonly onLocked: () => void;
  /** Called before the call is prepared. Rejects with GatewayError if there is no room for one more. */
  admit(): Promise<void>;
  /**
   * Lets `make` write the reply, and answers the client as soon as the money is locked. Rejects with the error of a
   * call that could not begin.
   */
  answer(startedCall: StartedChat, client: ReplySink, make: (sink: ReplySink) => Promise<unknown>): Promise<void>;
}

/** A reply that is kept for later requests. */
interface KeepsReply {
  /** Gets the reply in the client's wire. */
  readonly sink: ReplySink;
  /**
   * Called when all of the reply is written to `sink`, or when there will be none. Writes what the sink holds back.
   * Does not reject.
   */
  finish(): Promise<void>;
}

/** A request that refers to kept replies, with what they contain. */
export interface Resolved<B> {
  readonly wire: ChatWire<B>;
  readonly requestBody: B;
  /** The JSON text of `requestBody`. */
  readonly bytes: Buffer;
}
