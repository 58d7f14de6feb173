type Json = Readonly<Record<string, unknown>>;

/** Why a reply is not whole, as the chat wire says it. */
export interface ChatFault {
  readonly message: string;
  /** Type of the error on the chat wire, such as `provider_unavailable`. */
  readonly type: string;
  /** HTTP status. */
  readonly code: number;
}

/** The end of a chat reply. */
export interface ChatEnd {
  readonly finish: string | null;
  /** The sequence that ended the reply; null where the provider names none. */
  readonly stopSequence: string | null;
  /** `usage` of the chat wire, with its cost where something was settled; null where the reply failed before that. */
  readonly usage: Json | null;
  readonly fault: ChatFault | null;
  /** The member `tollgate` of the reply; undefined without one. */
  readonly tollgate: unknown;
}

/** A chat reply in one piece. */
export interface ChatSaid {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

/**
 * Says one chat reply in another wire. What is said is gathered until `take`. Texts come as the inside of a JSON
 * string, so that a text which is only passed on is never parsed.
 */
export interface Voice {
  /** The first events of a stream. */
  begin(): void;
  /** The texts of deltas that follow each other, each with something in it. */
  text(run: readonly string[]): void;
  thinking(json: string): void;
  /** A call of a tool begins. `index` counts from 0. */
  call(index: number, id: string, name: string): void;
  arguments(index: number, json: string): void;
  /** Keeps a silent stream alive. */
  ping(): void;
  /** The last events of a stream. */
  end(end: ChatEnd): void;
  /** The last event of a stream of a provider that speaks the wire, which has failed. */
  failNative(fault: ChatFault): void;
  take(): string;
  /** A reply in one piece. */
  whole(said: ChatSaid, end: ChatEnd): { readonly status: number; readonly body: Json };
}

/** Whether something was charged, or will be: such a reply is shown, whatever became of it. */
export const isCharged = ({ usage }: ChatEnd): boolean => usage !== null && usage['cost'] !== 0;

/** A reply that is nothing but its error. */
export const hasFailed = (end: ChatEnd): boolean =>
  !isCharged(end) && (end.fault !== null || end.finish === 'error' || end.usage === null);

/** The words of a reply that has failed. */
export const faultOf = ({ fault }: ChatEnd): ChatFault =>
  fault ?? { message: 'The model ended with an error', type: 'provider_unavailable', code: 500 };

/** The inside of a JSON string. */
export const jsonInside = (text: string): string => JSON.stringify(text).slice(1, -1);
