import type { PostgresDatabase } from '#store';
import { PAUSE_MAX_MS } from './group-commit.ts';
import { type ChainHead, journalHead } from './journal.ts';

/**
 * The flush of groups on PostgreSQL whose commit did not wait for the disk (decision 169). The commit of a later group
 * that waits, on any connection of the server, also flushes all before it, because the server's log is a sequence.
 *
 * The disk is asked after half of `flushMs`, so that the other half is left for the flush. While one takes longer, or
 * fails, groups wait for their own commits.
 */
export class LateFlush {
  readonly #database: PostgresDatabase;
  readonly #flushMs: number;
  readonly #acknowledged: Map<string, ChainHead>;
  /** When the first group was committed that may not be on the disk, in milliseconds of the monotonic clock. */
  #since: number | null = null;
  /** The same of those that a flush under way may miss. */
  #sinceNext: number | null = null;
  /** The chains that such groups belong to. */
  #chains = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> | null = null;
  #isClosed = false;

  /** `acknowledged`: gets the groups that are on the disk, see EngineOptions. */
  constructor(database: PostgresDatabase, flushMs: number, acknowledged: Map<string, ChainHead>) {
    this.#database = database;
    this.#flushMs = flushMs;
    this.#acknowledged = acknowledged;
  }

  /** Whether a group may be answered before the disk has it. */
  get isInTime(): boolean {
    return this.#since === null || performance.now() - this.#since < this.#flushMs;
  }

  /** A group with ends of calls was committed without the disk. `at`: when its commit was sent. */
  noteLate(chain: string, at: number): void {
    this.#since = Math.min(this.#since ?? at, at);
    this.#sinceNext = Math.min(this.#sinceNext ?? at, at);
    this.#chains.add(chain);
    this.#flushIn(this.#flushMs / 2);
  }

  /** Flushes all that any gateway has committed before. Rejects with DatabaseError. */
  async now(): Promise<void> {
    await journalHead(this.#database, '');
  }

  /** Resolves when the groups that were noted are on the disk, or cannot be. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#flushing;
    await this.#flush();
  }

  #flushIn(ms: number): void {
    if (this.#isClosed || this.#flushing !== null) return;
    this.#timer ??= setTimeout(flushNow, ms, this);
  }

  begin(): void {
    this.#timer = null;
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = null;
      if (this.#since !== null) this.#flushIn(this.isInTime ? this.#flushMs / 2 : PAUSE_MAX_MS);
    });
  }

  /** Never rejects: what could not be flushed is flushed at the next turn. */
  async #flush(): Promise<void> {
    if (this.#since === null) return;
    const chains = this.#chains;
    this.#chains = new Set();
    this.#sinceNext = null;
    try {
      for (const chain of chains) {
        const head = await journalHead(this.#database, chain);
        if (head.n > (this.#acknowledged.get(chain)?.n ?? 0)) this.#acknowledged.set(chain, head);
      }
      this.#since = this.#sinceNext;
    } catch {
      // The groups say what is wrong with the database.
      for (const chain of chains) this.#chains.add(chain);
    }
  }
}

const flushNow = (flush: LateFlush): void => flush.begin();
