import type { MicroUsd } from '#billing/amounts';
import type { AnsweredRequest } from '#call';
import type { TaskOwner } from '#tasks';
import type { Listed, PageRequest } from './file.ts';

/** The states of OpenAI's API. The last four are ends. */
export type BatchStatus =
  | 'validating'
  | 'in_progress'
  | 'finalizing'
  | 'cancelling'
  | 'completed'
  | 'failed'
  | 'expired'
  | 'cancelled';

export interface Batch extends TaskOwner {
  readonly id: string;
  /** The hash of the API key that made it; null for a wallet, a session or an access token. */
  readonly apiKey: string | null;
  /** The digest of the request that made it; null if that had no idempotency key. */
  readonly request: string | null;
  /** The dialect of the address that it was made at. Its results are in this dialect. */
  readonly dialect: 'openai' | 'own';
  /** Such as `/v1/chat/completions`. */
  readonly endpoint: string;
  readonly inputFile: string;
  /** The ids of its files of results. A file exists only after the end, and only if it has a line. */
  readonly outputFile: string;
  readonly errorFile: string;
  /** The most that it may cost by its request; null for the sum of what its lines may cost. */
  readonly maxCost: MicroUsd | null;
  /** How long its results are kept, in milliseconds. */
  readonly keepMs: number;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Tags in the headers of its request. Each line has them, and their budgets count the whole batch. null: none. */
  readonly tags: Readonly<Record<string, string>> | null;
  readonly errors: readonly BatchFault[] | null;
  readonly status: BatchStatus;
  /** The lock that lends to its lines; null until they are checked. */
  readonly lockId: string | null;
  readonly amount: MicroUsd | null;
  /** The model of all its lines; null if they differ, or are not checked yet. */
  readonly model: string | null;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly usage: BatchTokens | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly inProgressAt: number | null;
  readonly cancellingAt: number | null;
  readonly finalizingAt: number | null;
  readonly endedAt: number | null;
}

/** A fault of a batch that makes it fail as a whole. `line`: the number of the line in the file, from 1. */
export interface BatchFault {
  readonly code: string;
  readonly message: string;
  readonly line: number | null;
  readonly param: string | null;
}

/** The tokens of a call, or of all calls of a batch. `cached` is a part of `prompt`, `reasoning` of `completion`. */
export interface BatchTokens {
  readonly prompt: number;
  readonly cached: number;
  readonly completion: number;
  readonly reasoning: number;
}

interface NewBatch extends Pick<
  Batch,
  | 'account'
  | 'within'
  | 'apiKey'
  | 'request'
  | 'dialect'
  | 'endpoint'
  | 'inputFile'
  | 'maxCost'
  | 'keepMs'
  | 'metadata'
  | 'tags'
> {
  readonly id: string;
  /** How long it may take, in milliseconds. */
  readonly windowMs: number;
}

/** Batches in the database, for all its gateways. Methods reject with the database's error. */
export interface Batches {
  /**
   * Resolves with the batch, or with the one that has this id already. Rejects with GatewayError `rate_limit_exceeded`
   * if the account has the most that may be under way.
   */
  create(batch: NewBatch): Promise<Batch>;
  /** null if there is no such batch, or it is not the owner's. */
  find(id: string, owner: TaskOwner): Promise<Batch | null>;
  /** The newest first. null if `after` is no batch of the owner. */
  list(owner: TaskOwner, page: PageRequest): Promise<Listed<Batch> | null>;
  /** Lines that run go on to their end; no other begins. Resolves with false if the batch had ended, or nearly. */
  cancel(batch: Batch): Promise<boolean>;
  /**
   * Ends the batch with this lock for the operator, who says `why`: nothing of it that has not ended is charged.
   * Resolves with false if it had ended.
   */
  end(batch: Pick<Batch, 'id' | 'account'> & { readonly lockId: string }, why: string): Promise<boolean>;
  wasEnded(id: string, why: string): void;
  /** Deletes batches that ended long ago, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}

/** The reply to the request of a line, as its route gives it. `body`: JSON text. */
export interface LineReply {
  readonly status: number;
  /** Its request is not to be made again: it was taken, and too late. Default false. */
  readonly isFinal?: boolean;
  readonly requestId: string;
  readonly body: string;
}

/** The most that the call of a line may cost, and the model that it names; or the reply that refuses its request. */
export type Measured =
  | { readonly most: MicroUsd; readonly model: string }
  | { readonly refused: LineReply; readonly error: LineError };

export interface LineError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

/** The request of a line, as a provider gets it in a batch. Its call has a lock, which is kept. */
export interface HeldRequest {
  readonly offer: string;
  /** The path below the address of the provider. */
  readonly path: string;
  readonly body: Uint8Array;
}

/** Makes the calls of lines. The protocol of the models implements it. `body`: the JSON text of a request. */
export interface LineCalls {
  /** Checks a request as its route does, without a call. */
  measure(batch: Batch, body: string): Promise<Measured>;
  /**
   * Makes the call under `callId`, paid from the lock `parent`. If its provider is to get it in a batch, it is only
   * locked, until `locksUntil`: resolves with the request for the provider. Rejects if the gateway stops.
   */
  call(batch: Batch, body: string, callId: string, parent: string): Promise<LineReply | HeldRequest>;
  /**
   * The reply to a line whose call is locked, made of what its provider answered. It settles the call, unless that has
   * happened before: then the reply says what was charged at that time. null if the offer is gone, or the call cannot
   * be charged any more.
   */
  answer(batch: Batch, body: string, callId: string, answer: AnsweredRequest): Promise<LineReply | null>;
}
