import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * The protocol versions that an agent speaks. `both` serves both at one address and distinguishes them by the
 * `A2A-Version` header.
 */
export type AgentVersion = '1.0' | '0.3' | 'both';

export type AgentBinding = 'JSONRPC' | 'HTTP+JSON';

/** The states that a test can set a task to, with their names in 0.3. */
export type EndState = 'completed' | 'failed' | 'canceled' | 'rejected' | 'input-required' | 'auth-required';

export interface AgentOptions {
  /**
   * Default `1.0`. A `0.3` agent is older than 1.0: it ignores `A2A-Version` and doesn't know the newer method names.
   */
  readonly version?: AgentVersion;
  /** Default: both, at the same address. */
  readonly bindings?: readonly AgentBinding[];
  /** Default true. */
  readonly streaming?: boolean;
  /** Default true. */
  readonly pushNotifications?: boolean;
  /** `yes` (the default) has an extended card. `unset` claims one in its card but has none. `no` doesn't offer one. */
  readonly extendedCard?: 'yes' | 'unset' | 'no';
  /** Media types that messages may contain. Default: all. */
  readonly inputModes?: readonly string[];
  readonly name?: string;
  readonly port?: number;
  /** If set, every request except the card's needs this bearer token. Otherwise it gets a 401. */
  readonly bearer?: string;
  /** Replaces the origin of the URLs in the card. With it, tests check that a card can't decide where calls go. */
  readonly cardOrigin?: string;
}

/** One request that an agent received. */
export interface ReceivedRequest {
  /** `GET`, `POST` … */
  readonly verb: string;
  /** Path and query. */
  readonly path: string;
  /** The JSON-RPC method, or null for any other request. */
  readonly method: string | null;
  /** The `A2A-Version` header, or null. */
  readonly version: string | null;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** `params` of a JSON-RPC request, or the whole body of any other request. undefined if the body isn't JSON. */
  readonly params: unknown;
}

export interface Agent {
  /**
   * `http://127.0.0.1:<port>`. JSON-RPC is posted to it, the REST paths are below it, and the card is at
   * `/.well-known/agent-card.json`.
   */
  readonly url: string;
  /** The last 1,000 requests, oldest first, including those for the card. */
  readonly received: readonly ReceivedRequest[];
  /**
   * Of these, what a client asked for: neither the card nor the gateway's own look at a task, which comes when a task
   * has run for two seconds, and so in any test if the machine is slow.
   */
  readonly asked: readonly ReceivedRequest[];
  /** Resolves with the first past or future request for which `fits` is true. Rejects after a minute. */
  receives(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  /** Ids of the tasks that wait for `finish`, oldest first. */
  readonly waiting: readonly string[];
  /** Resolves with the id of a waiting task, as soon as there is one. Rejects after a minute. */
  waits(): Promise<string>;
  /** Sends one more chunk of a waiting task's artifact. */
  progress(taskId: string, text: string): void;
  /** Ends a waiting task. Throws if there is no waiting task with this id. */
  finish(taskId: string, state?: EndState): void;
  close(): Promise<void>;
}

/** An agent whose answers the test writes itself. */
export interface RawAgent {
  readonly url: string;
  /** This and the next: as of an `Agent`. */
  readonly received: readonly ReceivedRequest[];
  readonly asked: readonly ReceivedRequest[];
  receives(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  close(): Promise<void>;
}

export interface RawExchange {
  readonly request: ReceivedRequest;
  /** The id of a JSON-RPC request, otherwise null. */
  readonly id: unknown;
  readonly response: ServerResponse;
  /** Answers 200 with a JSON-RPC result. */
  result(result: unknown): void;
  /** Answers 200 with a JSON-RPC error. */
  error(code: number, message: string): void;
  /** Answers with an event stream of JSON-RPC results, and ends the stream. */
  events(results: readonly unknown[]): void;
}
