import type { IncomingMessage, ServerResponse } from 'node:http';

/** The wires that an agent speaks. `both` has them at one address, told apart by the `A2A-Version` header. */
export type AgentVersion = '1.0' | '0.3' | 'both';

export type AgentBinding = 'JSONRPC' | 'HTTP+JSON';

/** Names of the states that a task can be brought to from outside, in the words of 0.3. */
export type EndState = 'completed' | 'failed' | 'canceled' | 'rejected' | 'input-required' | 'auth-required';

export interface AgentOptions {
  /**
   * Default `1.0`. A `0.3` agent has never heard of 1.0: it takes no notice of `A2A-Version` and does not know the
   * newer method names.
   */
  readonly version?: AgentVersion;
  /** Default both, at the same address. */
  readonly bindings?: readonly AgentBinding[];
  /** Default true. */
  readonly streaming?: boolean;
  /** Default true. */
  readonly pushNotifications?: boolean;
  /** `yes` (the default) has one, `unset` says so in the card and has none, `no` does not offer it. */
  readonly extendedCard?: 'yes' | 'unset' | 'no';
  /** Media types that messages may carry; without it every one is taken. */
  readonly inputModes?: readonly string[];
  readonly name?: string;
  readonly port?: number;
  /** A bearer token without which every request but that for the card is answered 401. */
  readonly bearer?: string;
  /** URLs in the card begin with this in place of the real address: what a card says must not decide where calls go. */
  readonly cardOrigin?: string;
}

/** One request as it came to an agent. */
export interface ReceivedRequest {
  /** `GET`, `POST` … */
  readonly verb: string;
  /** Path and query. */
  readonly path: string;
  /** The JSON-RPC method, or null for a request of another kind. */
  readonly method: string | null;
  /** The `A2A-Version` header, or null. */
  readonly version: string | null;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Of JSON-RPC its `params`, else the whole body; undefined when it is no JSON. */
  readonly params: unknown;
}

export interface Agent {
  /**
   * `http://127.0.0.1:<port>`: JSON-RPC is POSTed there, REST is below it, the card at `/.well-known/agent-card.json`.
   */
  readonly url: string;
  /** Every request, oldest first; the last 1,000. Requests for the card are among them. */
  readonly received: readonly ReceivedRequest[];
  /** Resolves with the first request, from now or before, that fits; rejects after 10 s. */
  receives(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  /** Tasks that wait for `finish`, oldest first. */
  readonly waiting: readonly string[];
  /** Resolves with the id of a task that waits, once there is one; rejects after 10 s. */
  waits(): Promise<string>;
  /** Puts out one more chunk of the artifact of a task that waits. */
  progress(taskId: string, text: string): void;
  /** Ends the wait of a task. Throws when no task of this id waits. */
  finish(taskId: string, state?: EndState): void;
  close(): Promise<void>;
}

/** An agent whose every answer a test writes itself. */
export interface RawAgent {
  readonly url: string;
  readonly received: readonly ReceivedRequest[];
  receives(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  close(): Promise<void>;
}

export interface RawExchange {
  readonly request: ReceivedRequest;
  /** Of a JSON-RPC request, else null. */
  readonly id: unknown;
  readonly response: ServerResponse;
  /** Answers 200 with a JSON-RPC result. */
  result(result: unknown): void;
  /** Answers 200 with a JSON-RPC error. */
  error(code: number, message: string): void;
  /** Answers with an event stream of JSON-RPC results and ends it. */
  events(results: readonly unknown[]): void;
}
