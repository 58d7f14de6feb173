import { randomBytes } from 'node:crypto';
import { loadStatements, type Database, type Statement } from '#store';
import { getOrInsert } from '#wire';
import type { Batch, HeldRequest } from './batch.ts';
import { unreadable } from './check-lines.ts';
import { uploadPlace } from './batch-places.ts';
import type { Claim } from './claim.ts';
import { noRoom, readAnswers } from './provider-answers.ts';
import {
  type ProviderAnswer,
  type ProviderApi,
  ProviderFailure,
  type ProviderPlace,
  type RemoteBatch,
  toProviderLine,
} from './provider-api.ts';
import { MAYBE_THERE, type ProviderBatch, type ProviderBatchState, toProviderBatch } from './provider-batch-row.ts';
import type { ProviderQueues } from './provider-queues.ts';
import { type SealedContent, UnreadableContent } from './sealed-content.ts';

const SQL = loadStatements(import.meta.url, './sql/provider-batches.sql', [
  'countAnswered',
  'endDoneLines',
  'endHeldLines',
  'giveBackLines',
  'heldRequests',
  'holdLine',
  'moveProviderBatch',
  'openProviderBatch',
  'providerBatches',
]);

interface ProviderBatchesDeps {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly content: SealedContent;
  readonly provider: ProviderApi;
  readonly queues: ProviderQueues;
  readonly limits: {
    /** Bytes of the longest answer, and of all answers of a batch. */
    readonly replyBytesMax: number;
    readonly resultBytesMax: number;
  };
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

/** The largest batch at a provider. Its requests are in memory while they are uploaded. */
const LINES_MAX = 10_000;
const BYTES_MAX = 16 * 1024 * 1024;
const READ_AT_ONCE = 500;
/** After this time, a batch that a provider has begun to create is in its list, or will not come into being. */
const LISTED_MS = 60_000;
/** How far the clock of a provider may be behind. */
const CLOCK_MS = 600_000;
/** How long a provider may take to end a batch that was cancelled. */
const CANCEL_MS = 1_800_000;
/** The first pause before a batch is sent again that the provider had no room for. The next ones are twice as long. */
const FULL_MS = 300_000;
const FULL_MS_MAX = 3_600_000;
/** After so many refusals the batch is taken for one that the provider never has room for. */
const REFUSALS_MAX = 6;
/** Faults of a batch that pass: the provider has too many of its requests in the queue. */
const PASSING: ReadonlySet<string> = new Set(['token_limit_exceeded', 'rate_limit_exceeded', 'request_limit_exceeded']);
/** In any other status, also one that is missing or unknown, a provider may still work. */
const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'expired', 'cancelled']);
/** How long a provider must say that a batch does not exist, or has no results, before that is believed. */
const DOUBT_MS = 600_000;
/** The longest time that a file of results may take to arrive. */
const READ_MS = 900_000;
/** A file of results is read up to so many times the size that is kept, for the usage of the other answers. */
const READ_FACTOR = 16;
/** The pause between two looks at whether a file may still be read. */
const WATCH_MS = 250;

interface OpenBatch {
  readonly creation: Promise<ProviderBatch | null>;
  lines: number;
  bytes: number;
}

export const EXPIRED = {
  code: 'batch_expired',
  message: 'This request could not be executed before the completion window expired.',
};
const NO_ANSWER = {
  code: 'provider_no_answer',
  message: 'The provider ended its batch without an answer to this line',
};
const NEVER_ENDED = {
  status: 200,
  body: '',
  late: 'Its provider was asked to cancel its batch, and has not ended it in time, nor given the answer',
};
const CANCELLED = { code: 'provider_cancelled', message: 'The provider cancelled its batch before this line was made' };

/**
 * The batches at providers that have lines of one batch. Each step is a row before it is taken: another gateway goes on
 * with what it finds, and sends nothing twice.
 */
export class ProviderBatches {
  readonly #deps: ProviderBatchesDeps;
  readonly #batch: Batch;
  readonly #claim: Claim;
  /** By offer and path. */
  readonly #open = new Map<string, OpenBatch>();
  #live: ProviderBatch[] = [];

  constructor(deps: ProviderBatchesDeps, batch: Batch, claim: Claim) {
    this.#deps = deps;
    this.#batch = batch;
    this.#claim = claim;
  }

  async load(): Promise<void> {
    this.#live = (await this.#deps.database.query(SQL.providerBatches, [this.#batch.id])).map(toProviderBatch);
  }

  get isLive(): boolean {
    return this.#live.length > 0 || this.#open.size > 0;
  }

  /** Stores the request of a line, whose call has its lock, for the next batch at its provider. */
  async hold(n: number, callId: string, { offer, path, body }: HeldRequest): Promise<void> {
    const { database, content, now } = this.#deps;
    const key = `${path} ${offer}`;
    const text = toProviderLine(callId, path, body);
    const before = this.#open.get(key);
    if (before !== undefined && (before.lines >= LINES_MAX || before.bytes + text.byteLength > BYTES_MAX))
      this.#open.delete(key);
    const open = getOrInsert(this.#open, key, () => ({ creation: this.#make(offer, path, now()), lines: 0, bytes: 0 }));
    open.lines += 1;
    open.bytes += text.byteLength;
    const batch = await open.creation;
    if (batch === null) return this.#claim.lose();
    const sealed = await content.seal(this.#batch.account, text);
    const held = await database.query(SQL.holdLine, [this.#batch.id, n, callId, batch.id, sealed, this.#claim.id]);
    if (held.length === 0) this.#claim.lose();
  }

  async #make(offer: string, path: string, at: number): Promise<ProviderBatch | null> {
    const id = `tg_${randomBytes(16).toString('hex')}`;
    const params = [id, this.#batch.id, offer, path, at, this.#claim.id];
    if ((await this.#deps.database.query(SQL.openProviderBatch, params)).length === 0) return null;
    const providerBatch: ProviderBatch = {
      id,
      offer,
      path,
      state: 'collecting',
      file: null,
      remote: null,
      since: at,
      refusals: 0,
      bytes: 0,
    };
    this.#live.push(providerBatch);
    return providerBatch;
  }

  /** Takes the next steps of all batches. No line is held meanwhile. Resolves with whether one has ended. */
  async turn(): Promise<boolean> {
    this.#open.clear();
    const before = this.#live.length;
    for (const one of this.#live) {
      if (!this.#claim.goesOn) return false;
      try {
        await this.#step(one);
      } catch (error) {
        if (!(error instanceof ProviderFailure)) throw error;
        this.#deps.onError(error);
      }
    }
    this.#live = this.#live.filter(({ state }) => state !== 'ended');
    return this.#live.length < before;
  }

  get #isOver(): boolean {
    return this.#claim.isCancelled || this.#deps.now() >= this.#batch.expiresAt;
  }

  async #step(one: ProviderBatch): Promise<void> {
    if (one.state === 'closing') return this.#clean(one, await this.#filesOf(one));
    if (one.state === 'collecting') await this.#move(one, 'ready');
    if (!MAYBE_THERE.has(one.state) && this.#isOver) return this.#giveUp(one);
    if (!MAYBE_THERE.has(one.state) && !this.#deps.provider.takes(one.offer)) return this.#giveBack(one);
    try {
      if (one.state === 'creating') await this.#findCreated(one);
      if (one.state === 'ready' && one.since <= this.#deps.now()) await this.#upload(one);
      if (one.state === 'uploaded') await this.#create(one);
      if (one.state === 'sent' || one.state === 'doubted') await this.#checkRemote(one);
    } catch (error) {
      // A provider that cannot be asked any more does not hold up the end of the batch.
      if (!(error instanceof ProviderFailure) || !this.#isLate) throw error;
      await this.#giveUp(one);
    }
  }

  /** The model takes no batches any more: its lines are called as those of other models, under new locks. */
  async #giveBack(one: ProviderBatch): Promise<void> {
    const held = { statement: SQL.giveBackLines, params: [one.id, this.#claim.id] };
    await this.#close(one, [held], [one.file]);
  }

  async #upload(one: ProviderBatch): Promise<void> {
    const { provider, queues } = this.#deps;
    const release = await uploadPlace(provider.providerOf(one.offer), this.#batch.account, this.#claim.stop);
    if (release === null) return;
    let file: string | null | undefined;
    try {
      // It may have waited for its place.
      if (!this.#claim.goesOn || this.#isOver) return;
      if (one.bytes > 0 && !(await queues.mayGo(this.#batch, one))) return;
      const lines = await this.#requestsOf(one);
      if (one.bytes === 0 && lines.length > 0) {
        await this.#move(one, 'ready', { bytes: lines.reduce((sum, { byteLength }) => sum + byteLength, 0) });
        if (!(await queues.mayGo(this.#batch, one))) return;
      }
      file = lines.length === 0 ? null : await provider.upload(this.#place(one), `${one.id}.jsonl`, lines);
      if (file !== null) await this.#move(one, 'uploaded', { file });
    } catch (error) {
      file = await this.#refused(one, error);
    } finally {
      release();
    }
    // Nothing was held, or the provider has refused it.
    if (file === null && one.state === 'ready') await this.#end(one, NO_ANSWER, []);
  }

  async #requestsOf({ id }: ProviderBatch): Promise<readonly Buffer[]> {
    const { database, content } = this.#deps;
    const lines: Buffer[] = [];
    for (;;) {
      const rows = await database.query(SQL.heldRequests, [id, READ_AT_ONCE, lines.length]);
      for (const row of rows) lines.push(await content.open(this.#batch.account, row['content'] as Uint8Array));
      if (rows.length < READ_AT_ONCE) return lines;
    }
  }

  async #create(one: ProviderBatch): Promise<void> {
    const { provider, now } = this.#deps;
    // From here on the provider may have it, whatever happens to this gateway.
    if (!(await this.#move(one, 'creating', { file: one.file, since: now() }))) return;
    try {
      const remote = await provider.create(this.#place(one), one.file!, one.path, one.id);
      await this.#sent(one, remote);
    } catch (error) {
      if (!(error instanceof ProviderFailure) || error.isUnclear) throw error;
      if (error.isRefusal) return this.#refused(one, error);
      await this.#move(one, 'uploaded', { file: one.file });
      throw error;
    }
  }

  /** Some gateway has begun to create it, and does not know what became of that. */
  async #findCreated(one: ProviderBatch): Promise<void> {
    const { provider, now } = this.#deps;
    const place = this.#place(one);
    const find = () => provider.find(place, one.file!, one.since - CLOCK_MS);
    const remoteId = await find();
    if (remoteId !== null) return this.#sent(one, remoteId);
    if (now() < one.since + LISTED_MS) return;
    // A request that is still under way somewhere finds no file any more, so it cannot make a second batch.
    // As long as the file is there, that is not certain.
    await provider.remove(place, one.file!).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    const late = await find();
    if (late !== null) return this.#sent(one, late);
    if (this.#isOver) return this.#giveUp(one);
    await this.#move(one, 'ready');
  }

  async #sent(one: ProviderBatch, remote: string): Promise<void> {
    await this.#move(one, 'sent', { file: one.file, remote });
  }

  async #checkRemote(one: ProviderBatch): Promise<void> {
    const { provider, onError } = this.#deps;
    const place = this.#place(one);
    if (this.#claim.ended !== null) {
      // Nothing that the provider has made of it, or still makes, is charged.
      await provider.cancel(place, one.remote!).catch(onError);
      return this.#giveUp(one);
    }
    let seen: RemoteBatch;
    try {
      seen = await provider.lookUp(place, one.remote!);
    } catch (error) {
      if (!isMissing(error)) throw error;
      if (this.#isOver) return this.#giveUp(one);
      return (await this.#isBelieved(one)) ? this.#end(one, NO_ANSWER, [one.file]) : undefined;
    }
    const { status, outputFile, errorFile } = seen;
    const isEmpty = status === 'completed' && outputFile === null && errorFile === null;
    if (!ENDS.has(status) || (isEmpty && !(await this.#isBelieved(one)))) {
      if (!isEmpty && one.state === 'doubted') await this.#sent(one, one.remote!);
      if (this.#isLate) return this.#collect(one, seen);
      if (this.#isOver && !isEmpty && status !== 'cancelling') await provider.cancel(place, one.remote!);
      return;
    }
    if (seen.status === 'failed' && seen.outputFile === null) return this.#failed(one, seen);
    await this.#collect(one, seen);
  }

  /** Whether the provider has given an answer for some minutes that costs the lines theirs. */
  async #isBelieved(one: ProviderBatch): Promise<boolean> {
    const { file, remote } = one;
    const at = this.#deps.now();
    if (one.state === 'doubted') return at >= one.since + DOUBT_MS;
    await this.#move(one, 'doubted', { file, remote, since: at });
    return false;
  }

  /** The provider did not even begin. */
  async #failed(one: ProviderBatch, { faults }: RemoteBatch): Promise<void> {
    const { now, queues } = this.#deps;
    const [first] = faults;
    const { file } = one;
    const refusals = one.refusals + 1;
    if (first !== undefined && PASSING.has(first.code) && !this.#isOver && refusals < REFUSALS_MAX) {
      await queues.wasFull(one);
      const pauseMs = Math.min(FULL_MS * 2 ** one.refusals, FULL_MS_MAX);
      await this.#move(one, 'ready', { since: now() + pauseMs, refusals });
      return this.#remove(one, file);
    }
    const why = first === undefined ? '' : `: ${first.message}`;
    await this.#end(one, { code: 'provider_batch_failed', message: `The provider refused the batch${why}` }, [file]);
  }

  /** Stores the answers of a batch that has ended, or is given up, before anything of it is settled. */
  async #collect(one: ProviderBatch, { status, outputFile, errorFile, done }: RemoteBatch): Promise<void> {
    const files = [outputFile, errorFile].filter((file) => file !== null);
    let rest: LineRest = this.#restOf(status);
    for (const file of files) {
      const tooLarge = await this.#read(one, file);
      if (!this.#claim.goesOn) return;
      // Their provider has done them.
      if (tooLarge) rest = { status: 200, body: '', tooLarge: noRoom(this.#deps.limits.resultBytesMax) };
    }
    await this.#end(one, rest, [one.file, ...files], ENDS.has(status) ? 0 : (done ?? LINES_MAX));
  }

  /** The error of lines that the provider has not answered; null: they have no result. */
  #restOf(status: string): { code: string; message: string } | null {
    if (status === 'cancelled' || (this.#isOver && !ENDS.has(status)))
      return this.#claim.isCancelled ? null : this.#isOver ? EXPIRED : CANCELLED;
    return status === 'expired' ? EXPIRED : NO_ANSWER;
  }

  /**
   * Stores the answers in a file. Stops when this gateway does, or when the locks are about to expire.
   * Resolves with whether the file has more than is read.
   */
  async #read(one: ProviderBatch, file: string): Promise<boolean> {
    const { provider, limits, now } = this.#deps;
    const until = Math.min(now(), this.#lateAt) + READ_MS;
    const stop = new AbortController();
    const watch = setInterval(() => {
      if (!this.#claim.goesOn || now() >= until) stop.abort();
    }, WATCH_MS);
    const context = { batch: this.#batch, id: one.id, claim: this.#claim, scrub: provider.scrubOf(one.offer) };
    try {
      const bytesMax = READ_FACTOR * limits.resultBytesMax;
      await readAnswers(this.#deps, context, provider.read(this.#place(one), file, bytesMax, stop.signal));
      return false;
    } catch (error) {
      if (!(error instanceof ProviderFailure) || (this.#claim.goesOn && !error.tooLarge)) throw error;
      return error.tooLarge;
    } finally {
      clearInterval(watch);
    }
  }

  /** The time of the batch is over, or it was cancelled, and nobody waits for what the provider has. */
  async #giveUp(one: ProviderBatch): Promise<void> {
    await this.#end(one, this.#claim.isCancelled ? this.#claim.ended : EXPIRED, [one.file]);
  }

  /** Whether the provider has had its time to end what was cancelled. */
  get #isLate(): boolean {
    return this.#deps.now() >= this.#lateAt;
  }

  get #lateAt(): number {
    return Math.min(this.#batch.cancellingAt ?? Infinity, this.#batch.expiresAt) + CANCEL_MS;
  }

  /** Ends the lines of a batch that the provider refuses, or that cannot be read. Rethrows other errors. */
  async #refused(one: ProviderBatch, error: unknown): Promise<undefined> {
    if (error instanceof UnreadableContent) {
      await this.#end(one, unreadable(error), [one.file]);
      return undefined;
    }
    if (!(error instanceof ProviderFailure) || !error.isRefusal) throw error;
    await this.#end(one, { code: 'provider_batch_failed', message: error.message }, [one.file]);
    this.#deps.onError(error);
    return undefined;
  }

  /**
   * Gives all lines without an answer this one, or this error (null: they have no result), and deletes these files.
   * `done`: so many lines have been done by the provider, which may not have been read. The first of them are charged.
   */
  async #end(one: ProviderBatch, rest: LineRest, files: readonly (string | null)[], done = 0): Promise<void> {
    const { content, database } = this.#deps;
    const change = async (statement: Statement, answer: ProviderAnswer, ...most: readonly number[]) => {
      const sealed = await content.seal(this.#batch.account, Buffer.from(JSON.stringify(answer)));
      return { statement, params: [one.id, sealed, this.#claim.id, ...most] };
    };
    const [answered] = done === 0 ? [] : await database.query(SQL.countAnswered, [one.id]);
    const unread = done - Number(answered?.['count'] ?? 0);
    const changes = unread > 0 ? [await change(SQL.endDoneLines, NEVER_ENDED, unread)] : [];
    const answer = rest === null ? ({ dropped: true } as const) : 'tooLarge' in rest ? rest : { error: rest };
    changes.push(await change(SQL.endHeldLines, answer));
    await this.#close(one, changes, files);
  }

  async #close(
    one: ProviderBatch,
    changes: Parameters<Database['batch']>[0],
    files: readonly (string | null)[],
  ): Promise<void> {
    const { database, now } = this.#deps;
    const { id, state, file, remote, refusals, bytes } = one;
    const move = [id, state, 'closing', file, remote, now(), this.#claim.id, refusals, bytes];
    const moved = (await database.batch([...changes, { statement: SQL.moveProviderBatch, params: move }])).at(-1);
    if (moved!.length === 0) return this.#claim.lose();
    one.state = 'closing';
    await this.#clean(one, files);
  }

  /** The files of a batch whose lines were ended by a gateway that was killed before it had deleted them. */
  async #filesOf(one: ProviderBatch): Promise<readonly (string | null)[]> {
    const { file, remote } = one;
    if (remote === null) return [file];
    try {
      const { outputFile, errorFile } = await this.#deps.provider.lookUp(this.#place(one), remote);
      return [file, outputFile, errorFile];
    } catch (error) {
      if (!(error instanceof ProviderFailure)) throw error;
      return [file];
    }
  }

  async #clean(one: ProviderBatch, files: readonly (string | null)[]): Promise<void> {
    for (const file of files) await this.#remove(one, file);
    await this.#move(one, 'ended', { file: one.file, remote: one.remote });
  }

  /** Resolves with false if another gateway has the batch. */
  async #move(
    one: ProviderBatch,
    to: ProviderBatchState,
    {
      file = null,
      remote = null,
      since = one.since,
      refusals = one.refusals,
      bytes = one.bytes,
    }: { file?: string | null; remote?: string | null; since?: number; refusals?: number; bytes?: number } = {},
  ): Promise<boolean> {
    const params = [one.id, one.state, to, file, remote, since, this.#claim.id, refusals, bytes];
    const moved = await this.#deps.database.query(SQL.moveProviderBatch, params);
    if (moved.length === 0) {
      this.#claim.lose();
      return false;
    }
    Object.assign(one, { state: to, file, remote, since, refusals, bytes });
    return true;
  }

  /** Files that stay at the provider cost nothing, so a failure is not tried again. */
  async #remove(one: ProviderBatch, file: string | null): Promise<void> {
    if (file === null) return;
    await this.#deps.provider.remove(this.#place(one), file).catch((error: unknown) => {
      if (!(error instanceof ProviderFailure)) throw error;
    });
  }

  #place({ offer }: ProviderBatch): ProviderPlace {
    return { offer, account: this.#batch.account };
  }
}

type LineRest =
  | { readonly code: string; readonly message: string }
  | Extract<ProviderAnswer, { readonly tooLarge: string }>
  | null;

const NOT_FOUND = 404;
const isMissing = (error: unknown): boolean => error instanceof ProviderFailure && error.status === NOT_FOUND;
