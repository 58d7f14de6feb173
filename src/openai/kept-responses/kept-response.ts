import { numberOrNull, rowReader, type Row } from '#store';
import type { TaskOwner } from '#tasks';

/** A response of a model that is kept for later requests, without its content. */
export interface KeptResponse extends TaskOwner {
  readonly id: string;
  readonly service: string;
  readonly previous: string | null;
  /** Approximate sizes of the content. */
  readonly inputBytes: number;
  readonly responseBytes: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** null if it has ended, or was answered in place. */
  readonly run: RunState | null;
  /** Until when the gateway that makes it is there at least; null as for `run`. */
  readonly runUntil: number | null;
}

/** JSON texts. */
export interface KeptContent {
  readonly input: string;
  readonly response: string;
}

/** The content of a row, with its state at that moment. */
export interface ReadContent extends KeptContent, Pick<KeptResponse, 'run'> {}

interface NewKeptResponse extends TaskOwner, KeptContent {
  readonly id: string;
  readonly service: string;
  readonly previous: string | null;
  /** Ids under which later requests can name its items, except those that contain the id of the response. */
  readonly items: readonly string[];
}

/**
 * Responses that are kept for later requests, in the database, so that all its gateways know them. The content is
 * sealed for its account. A use prolongs the time for which a response is kept. Methods reject with the database's
 * error.
 */
export interface KeptResponses {
  readonly running: RunningResponses;
  /**
   * Stores that a response will be put, before its call begins. Nobody is shown it. If its gateway ends before `put` or
   * `drop`, the row is found as lost.
   */
  expect(response: Pick<NewKeptResponse, 'id' | 'account' | 'within' | 'service'>): Promise<void>;
  /** Removes an expected response that will not be put. If the database fails, `sweep` does it. */
  drop(response: Pick<KeptResponse, 'id' | 'account'>): Promise<void>;
  /** Resolves with false if the response is larger than what an account may keep. */
  put(response: NewKeptResponse): Promise<boolean>;
  /** null if there is no such response, or it is not the owner's. */
  find(id: string, owner: TaskOwner): Promise<KeptResponse | null>;
  /**
   * A response and those that its conversation continues, the first one first. Empty if there is no such response. If
   * an earlier one is gone, the list begins after it.
   */
  lineage(id: string, owner: TaskOwner): Promise<readonly KeptResponse[]>;
  findAll(ids: readonly string[], owner: TaskOwner): Promise<readonly KeptResponse[]>;
  /** The owner's latest responses that have these items, by the id of the item. */
  ofItems(ids: readonly string[], owner: TaskOwner): Promise<ReadonlyMap<string, KeptResponse>>;
  read(responses: readonly KeptResponse[]): Promise<ReadonlyMap<string, ReadContent>>;
  /** Prolongs the time for which responses are kept, because they are used. */
  use(responses: readonly KeptResponse[]): Promise<void>;
  /** Of one that is under way, a row without content stays until its call is settled, so that it still counts. */
  delete(response: Pick<KeptResponse, 'id' | 'account'>): Promise<void>;
  /** Deletes expired responses, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}

/**
 * The state of a response that a gateway makes in the background. `cancelling`: it was cancelled and is not settled
 * yet. `deleting`: the same after it was deleted. `lost`: its gateway does not say any more that it is there.
 * `answering`: a client gets it in place, and it is not stored yet.
 */
export type RunState = 'queued' | 'in_progress' | 'cancelling' | 'deleting' | 'lost' | 'answering';

export interface KeptEvents {
  /** Numbers of the first and of the last of them. */
  readonly first: number;
  readonly last: number;
  /** The events as they are sent. */
  readonly text: string;
}

export interface RunningEnd extends Pick<KeptContent, 'response'>, TaskOwner {
  readonly id: string;
  readonly items: readonly string[];
  /** The events that are not stored yet; none if it is not streamed. */
  readonly events: readonly KeptEvents[];
}

export type Stored = 'kept' | 'too_large' | 'gone';

/**
 * Responses that gateways make in the background, in the database, so that every gateway can show them. Their gateway
 * says every few seconds that it is there. Methods reject with the database's error.
 */
export interface RunningResponses {
  /** Rejects with GatewayError `rate_limit_exceeded` if the owner has its share of those under way. */
  admit(owner: TaskOwner): Promise<void>;
  /**
   * Stores a response that begins. `events`: its first events if it is streamed, else null. Rejects with GatewayError
   * `rate_limit_exceeded`, and `payload_too_large` if it is larger than what an account may keep.
   */
  begin(response: NewKeptResponse, events: KeptEvents | null): Promise<void>;
  /** The first provider has begun to answer. */
  noteBegun(id: string): Promise<void>;
  /** Returns whether the response was under way. Its gateway then learns that it has to stop. */
  cancel(id: string): Promise<boolean>;
  /**
   * Stores what clients see of a cancelled response until its call is settled. `too_large` and `gone` as for `finish`.
   */
  showCancelled(end: RunningEnd): Promise<Stored>;
  /** Removes one whose call could not begin, or whose call has ended after it was deleted. */
  remove(response: Pick<KeptResponse, 'id' | 'account'>): Promise<void>;
  /** States of responses by their ids; one that is gone is missing. null: it has ended. */
  statesOf(ids: readonly string[]): Promise<ReadonlyMap<string, RunState | null>>;
  /** The gateway of these responses is there. */
  renew(ids: readonly string[]): Promise<void>;
  addEvents(response: Pick<RunningEnd, 'id' | 'account'>, events: KeptEvents): Promise<void>;
  /**
   * Stores the end. `too_large`: nothing is stored, because the account may not keep so much. `gone`: the response was
   * deleted.
   */
  finish(end: RunningEnd): Promise<Stored>;
  /**
   * At most `limit` responses whose gateway is gone, and lost ones whose call may have been charged since. `all`: all
   * that are under way, as no gateway is there.
   */
  lost(limit: number, all?: boolean): Promise<readonly KeptResponse[]>;
  isLost(response: KeptResponse): boolean;
  /**
   * Stores the end of a response whose gateway is gone. `openUntil`: when `lost` finds it again; null: never.
   * `isSure`: it does not have to look whether the gateway is gone.
   */
  lose(end: RunningEnd, openUntil: number | null, isSure?: boolean): Promise<void>;
  /** Until then, `lost` does not find an expected response. */
  postpone(id: string, until: number): Promise<void>;
  /** The number of the last stored event; null if the response is not streamed. */
  lastEvent(id: string): Promise<number | null>;
  /** At most `limit` parts of the events after number `after`, in order. */
  events(
    response: Pick<KeptResponse, 'id' | 'account'>,
    after: number,
    limit: number,
  ): Promise<readonly Omit<KeptEvents, 'first'>[]>;
}

const read = rowReader<Omit<KeptResponse, 'run'>>(
  {
    inputBytes: Number,
    responseBytes: Number,
    createdAt: Number,
    expiresAt: Number,
    runUntil: numberOrNull,
  },
  { part: 'within' },
);

/** Reads a row of a response without its content. */
export const toKept = (row: Row): KeptResponse => ({ ...read(row), run: row['run'] as KeptResponse['run'] });
