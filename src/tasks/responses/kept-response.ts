import type { TaskOwner } from '../task.ts';
import type { RunningResponses, RunState } from './running-response.ts';

/** A response of a model that is kept for later requests, without its content. */
export interface KeptResponse extends TaskOwner {
  readonly id: string;
  readonly service: string;
  /** The response that its conversation continues; null for none. */
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
  /** The items of the request. */
  readonly input: string;
  /** The response object. */
  readonly response: string;
}

/** The content of a row, with its state at that moment. */
export interface ReadContent extends KeptContent, Pick<KeptResponse, 'run'> {}

export interface NewKeptResponse extends TaskOwner, KeptContent {
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
  /** Those that gateways make in the background. */
  readonly running: RunningResponses;
  /** Resolves with false if the response is larger than what an account may keep. */
  put(response: NewKeptResponse): Promise<boolean>;
  /** null if there is no such response, or it is not the owner's. */
  find(id: string, owner: TaskOwner): Promise<KeptResponse | null>;
  /**
   * A response and those that its conversation continues, the first one first. Empty if there is no such response. If
   * an earlier one is gone, the list begins after it.
   */
  lineage(id: string, owner: TaskOwner): Promise<readonly KeptResponse[]>;
  /** The owner's responses with these ids. */
  findAll(ids: readonly string[], owner: TaskOwner): Promise<readonly KeptResponse[]>;
  /** The owner's latest responses that have these items, by the id of the item. */
  ofItems(ids: readonly string[], owner: TaskOwner): Promise<ReadonlyMap<string, KeptResponse>>;
  /** The content of responses, by their ids. */
  read(responses: readonly KeptResponse[]): Promise<ReadonlyMap<string, ReadContent>>;
  /** Prolongs the time for which responses are kept, because they are used. */
  use(responses: readonly KeptResponse[]): Promise<void>;
  /** Of one that is under way, a row without content stays until its call is settled, so that it still counts. */
  delete(response: Pick<KeptResponse, 'id' | 'account'>): Promise<void>;
  /** Deletes expired responses, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}
