import { loadStatements, type Database, type Row } from '#store';
import type { JobPlace, Places } from '#wire';
import { type AnsweredRequest, newCallId } from '#call';
import type { Batch, BatchFault, HeldRequest, LineCalls, LineReply } from './batch.ts';
import type { BatchMoney } from './batch-money.ts';
import { shareOf } from './batch-places.ts';
import { ofInput, unreadable } from './check-lines.ts';
import { type Claim, NotNow } from './claim.ts';
import type { StoredFiles } from './file.ts';
import { linesOf } from './input-lines.ts';
import { customIdOf, type LineLimits, type LineRequest, readLine, refusedLine } from './line-request.ts';
import { answeredLine, type LineResult, unansweredLine } from './line-result.ts';
import { answerOfLine, LATE, TOO_LARGE } from './provider-answers.ts';
import type { ProviderApi } from './provider-api.ts';
import { EXPIRED, ProviderBatches } from './provider-batches.ts';
import type { ProviderQueues } from './provider-queues.ts';
import { type SealedContent, UnreadableContent } from './sealed-content.ts';

const SQL = loadStatements(import.meta.url, './sql/batches.sql', [
  'beginLine',
  'endBatchLine',
  'linesOfBatch',
  'postponeLine',
  'sumLines',
]);

export interface RunDeps {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly files: Pick<StoredFiles, 'read'>;
  readonly content: SealedContent;
  readonly money: Pick<BatchMoney, 'endCall' | 'holds'>;
  readonly calls: Pick<LineCalls, 'call' | 'answer'>;
  readonly provider: ProviderApi;
  readonly queues: ProviderQueues;
  readonly lookMs: number;
  readonly places: Places;
  readonly limits: LineLimits & {
    readonly replyBytesMax: number;
    /** Bytes of the results of a batch. When it has so many, no other line begins. */
    readonly resultBytesMax: number;
  };
  readonly now: () => number;
  readonly random: () => number;
  /** Gets errors of the database; the work goes on. */
  readonly onError: (error: unknown) => void;
}

/** Pauses before a line is tried again that failed for a reason that may pass. */
const RETRY_MS = [1_000, 5_000, 20_000] as const;
const JITTER = 0.3;
const TEMPORARY: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529]);
const NO_MONEY = 402;
const SERVER_FAULT = 500;
/** The pause after a write that failed. */
const STORE_AGAIN_MS = 1_000;

const GONE = {
  code: 'provider_gone',
  message:
    'The provider has answered, but the gateway does not offer its model any more, or its lock has expired. Nothing was charged',
};
const TOO_MUCH = (bytes: number) => ({
  code: 'output_too_large',
  message: `The results of this batch take ${bytes} bytes already, which is the limit (batches.account_bytes_max). This request was not made`,
});

/** So many charges of a line are given back, because its answers were lost. It may be what ends its gateways. */
const LOST_MAX = 2;
const LOST = {
  code: 'gateway_gone',
  message: `The gateway that had this request ended before its answer was stored. What it was charged is given back. It is not made again, because that happened ${LOST_MAX} times, or because the batch has too little of its money left`,
};

const MAY_BE_BILLED = 'It may bill the request, so what the request takes was charged';
const ITS_USE = 'Its provider has done the work, and what that costs was charged';

/** The name of a line is in the input. */
const NAMELESS = { customId: '' };

export class BatchRun {
  completed = 0;
  failed = 0;
  /** Set if its input cannot be read any more: the lines that have not begun have no result. */
  fault: BatchFault | null = null;
  readonly #deps: RunDeps;
  readonly #batch: Batch;
  readonly #claim: Claim;
  readonly #providers: ProviderBatches;
  /** Lines that nothing is to be done for now: they have ended, or a provider has them. */
  readonly #done = new Set<number>();
  /** Lines that were running at a gateway that is gone, with their calls. */
  readonly #orphans = new Map<number, string>();
  readonly #answered = new Map<number, string>();
  /** How many charges of lines were given back, because their answers were lost. */
  readonly #lost = new Map<number, number>();
  /** Lines that wait for money. */
  readonly #poor = new Set<number>();
  readonly #running = new Set<Promise<void>>();
  /** Calls that may hold money of the batch now. */
  #inFlight = 0;
  /** Calls that have ended and were not refused for lack of money. */
  #returned = 0;
  /** Resolve when such a call has ended. */
  #waiting: (() => void)[] = [];
  #resultBytes = 0;
  /** Some answer of a provider could not be settled yet. */
  #isUnsettled = false;

  constructor(deps: RunDeps, batch: Batch, claim: Claim) {
    this.#deps = deps;
    this.#batch = batch;
    this.#claim = claim;
    this.#providers = new ProviderBatches(deps, batch, claim);
  }

  /**
   * Calls the lines that have not ended. Resolves when none runs; with false if the batch must go on elsewhere. Rejects
   * with NotNow if all that is left is at providers, or could not be settled yet.
   */
  async run(): Promise<boolean> {
    await this.#providers.load();
    for (;;) {
      await this.#readState();
      if (this.#hasWork) await this.#pass();
      if (!this.#claim.goesOn) break;
      if (this.#claim.givesWay) throw new NotNow('other accounts wait for the place of this batch', 0);
      if (this.#isUnsettled) throw new NotNow('answers of providers could not be settled yet', this.#deps.lookMs);
      if (!this.#providers.isLive) break;
      const answered = await this.#providers.turn();
      if (!this.#claim.goesOn) break;
      if (!answered && !this.#claim.givesWay)
        throw new NotNow('providers have the rest of the lines', this.#deps.lookMs);
    }
    return this.#claim.goesOn;
  }

  get #hasWork(): boolean {
    if (this.#orphans.size > 0 || this.#answered.size > 0) return true;
    if (this.#claim.isCancelled || this.fault !== null) return false;
    const known = this.#done.size + this.#poor.size;
    return known < this.#batch.total || (this.#poor.size > 0 && !this.#providers.isLive);
  }

  get #mayBegin(): boolean {
    return this.#claim.goesOn && !this.#claim.givesWay;
  }

  get running(): number {
    return this.#running.size;
  }

  async #pass(): Promise<void> {
    const { files, limits } = this.#deps;
    const { inputFile, account } = this.#batch;
    await this.#endOrphans();
    try {
      // All lines were checked before the first was called, so none is longer than what was allowed at that time.
      for await (const { n, bytes } of linesOf(files.read(ofInput(inputFile, account)), Infinity)) {
        const { isCancelled } = this.#claim;
        if (!this.#mayBegin || (isCancelled && this.#orphans.size + this.#answered.size === 0)) break;
        const isOpen = this.#orphans.has(n) || this.#answered.has(n);
        if (this.#done.has(n) || (isCancelled && !isOpen)) continue;
        // What held lines do not use comes back only with their answers.
        if (this.#poor.has(n) && this.#providers.isLive) continue;
        const line = await readLine(bytes, this.#batch.endpoint, limits);
        await ('code' in line ? this.#refuse(n, await customIdOf(bytes!), line) : this.#next(n, line));
      }
    } catch (error) {
      if (!(error instanceof UnreadableContent)) throw error;
      this.fault = unreadable(error);
    } finally {
      await Promise.all(this.#running);
    }
    if (this.fault !== null) await this.#endUnreadable(this.fault);
  }

  /** Ends the lines that hold money, without a request that could be made or settled. */
  async #endUnreadable({ code, message }: BatchFault): Promise<void> {
    const { money } = this.#deps;
    for (const [n, callId] of [...this.#orphans, ...this.#answered]) {
      if (!this.#claim.goesOn) return;
      await money.endCall(this.#batch, callId);
      await this.#endWithout(n, callId, NAMELESS, { code, message });
    }
    this.#orphans.clear();
    this.#answered.clear();
  }

  /** Their calls can move no money any more. Before any line is called, because it may need what they have locked. */
  async #endOrphans(): Promise<void> {
    for (const [n, callId] of this.#orphans) {
      if (!this.#claim.goesOn) return;
      const isGivenBack = await this.#deps.money.endCall(this.#batch, callId);
      if (isGivenBack) this.#lost.set(n, (this.#lost.get(n) ?? 0) + 1);
    }
  }

  async #readState(): Promise<void> {
    const { database } = this.#deps;
    const { id } = this.#batch;
    const counts = { completed: 0, failed: 0 };
    this.#isUnsettled = false;
    for (const set of [this.#done, this.#orphans, this.#answered, this.#lost, this.#poor]) set.clear();
    for (const row of await database.query(SQL.linesOfBatch, [id])) {
      const n = Number(row['n']);
      const state = row['state'] as string;
      if (Number(row['lost']) > 0) this.#lost.set(n, Number(row['lost']));
      if (state === 'running') this.#orphans.set(n, row['call_id'] as string);
      else if (state === 'answered') this.#answered.set(n, row['call_id'] as string);
      else if (state === 'waiting') this.#poor.add(n);
      else this.#done.add(n);
      if (state === 'completed' || state === 'failed') counts[state] += 1;
    }
    Object.assign(this, counts);
    this.#resultBytes = 0;
    for (const { state, room } of await sumsOf(database, id))
      if (state === 'completed' || state === 'failed') this.#resultBytes += room;
  }

  /** Ends a line that a limit does not allow any more, which was lowered after the line was checked. */
  async #refuse(n: number, customId: string, { code, message }: { code: string; message: string }): Promise<void> {
    const answered = this.#answered.get(n);
    if (answered !== undefined) await this.#deps.money.endCall(this.#batch, answered);
    this.#answered.delete(n);
    this.#orphans.delete(n);
    if (this.#claim.isCancelled && answered === undefined) return;
    const callId = answered ?? newCallId();
    if (answered === undefined && !(await this.#begin(n, callId))) return;
    const lowered = `${message}: the limit was lowered after the batch had begun. Nothing was charged`;
    return this.#endWithout(n, callId, { customId }, { code, message: lowered });
  }

  /** Begins a line as soon as there is a place for it, or ends it without a call. */
  async #next(n: number, line: LineRequest): Promise<void> {
    const { limits, now } = this.#deps;
    const batch = this.#batch;
    const answered = this.#answered.get(n);
    if (answered !== undefined) {
      this.#answered.delete(n);
      const place = await this.#place();
      if (place !== null) this.#start(place, () => this.#holding(() => this.#settle(n, answered, line)));
      return;
    }
    this.#orphans.delete(n);
    const place = await this.#place();
    if (place === null) return;
    const why =
      now() >= batch.expiresAt
        ? EXPIRED
        : this.#resultBytes > limits.resultBytesMax
          ? TOO_MUCH(limits.resultBytesMax)
          : (this.#lost.get(n) ?? 0) >= LOST_MAX
            ? LOST
            : null;
    if (why !== null || !this.#claim.goesOn || this.#claim.isCancelled) {
      place.release();
      if (why === null || this.#claim.isCancelled) return;
      const callId = newCallId();
      if (await this.#begin(n, callId)) await this.#endWithout(n, callId, line, why);
      return;
    }
    this.#start(place, () => this.#call(n, line));
  }

  /** null if the batch begins no other line now. */
  #place(): Promise<JobPlace | null> {
    const claim = this.#claim;
    const options = { share: shareOf(this.#batch), stop: claim.stop, onLong: () => claim.becomeLong() };
    return this.#deps.places.take(this.#batch.account, options);
  }

  #start(place: JobPlace, run: () => Promise<void>): void {
    const running = run()
      .catch((error: unknown) => {
        // The line stays as it is. Whoever goes on with the batch finds out whether its call was charged.
        if (!this.#claim.goesOn) return;
        this.#claim.lose();
        this.#deps.onError(error);
      })
      .finally(() => {
        place.release();
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  async #call(n: number, { customId, body, refusal }: LineRequest): Promise<void> {
    const { calls, random } = this.#deps;
    const batch = this.#batch;
    for (let tries = 0; ;) {
      const callId = newCallId();
      if (!(await this.#begin(n, callId))) return;
      const returned = this.#returned;
      const reply =
        refusal === null
          ? await this.#holding(() => calls.call(batch, body, callId, batch.lockId!), isRefused)
          : refusedLine(callId, refusal);
      if ('offer' in reply) return this.#providers.hold(n, callId, reply);
      const { status } = reply;
      // A gateway that stops fails its calls. Another one makes this one.
      if (!this.#claim.goesOn && status >= SERVER_FAULT) return;
      const pauseMs = TEMPORARY.has(status) && !reply.isFinal ? RETRY_MS[tries] : undefined;
      const mayGoOn = this.#claim.goesOn && !this.#claim.isCancelled;
      if (status === NO_MONEY && this.#returned > returned && mayGoOn) {
        // Another line has ended meanwhile, perhaps after this one was refused.
      } else if (status === NO_MONEY && this.#inFlight > 0 && mayGoOn) {
        // Other lines hold what is left of the money, and give most of it back.
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      } else if (status === NO_MONEY && this.#providers.isLive && mayGoOn) {
        await this.#deps.database.query(SQL.postponeLine, [batch.id, n, callId]);
        return;
      } else if (pauseMs !== undefined && mayGoOn && this.#deps.now() < batch.expiresAt) {
        tries += 1;
        await this.#claim.rest(pauseMs * (1 - JITTER * random()));
      } else if (status === NO_MONEY && this.#lost.has(n)) {
        // Its first charge came from the lock of the batch, and was given back to the account.
        return this.#endWithout(n, callId, { customId }, LOST);
      } else {
        return this.#end(n, callId, await answeredLine(batch, n, customId, reply));
      }
    }
  }

  /** Runs something after which a line may have given money back. */
  async #holding<R>(run: () => Promise<R>, hasNone: (result: R) => boolean = () => false): Promise<R> {
    this.#inFlight += 1;
    let returns = 1;
    try {
      const result = await run();
      if (hasNone(result)) returns = 0;
      return result;
    } finally {
      this.#inFlight -= 1;
      this.#returned += returns;
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }

  /** Ends a line that its provider has answered, and whose call has its lock. It can be done again. */
  async #settle(n: number, callId: string, line: LineRequest): Promise<void> {
    const { money } = this.#deps;
    const batch = this.#batch;
    const lineAnswer = await answerOfLine(this.#deps, batch, n);
    if (lineAnswer === null) return this.#claim.lose();
    const { offer, answer } = lineAnswer;
    if ('status' in answer) {
      const reply = await this.#answer(line, callId, { offer, ...answer });
      if (reply !== null) {
        if (await money.holds(callId)) {
          // The route refused it before anything was settled, for a reason that may pass: the answer is kept.
          if (TEMPORARY.has(reply.status)) {
            this.#isUnsettled = true;
            return;
          }
          await money.endCall(batch, callId);
        }
        if ('tooLarge' in answer)
          return this.#endWithout(n, callId, line, { code: TOO_LARGE, message: `${answer.tooLarge}. ${ITS_USE}` });
        if ('late' in answer)
          return this.#endWithout(n, callId, line, { code: LATE, message: `${answer.late}. ${MAY_BE_BILLED}` });
        return this.#end(n, callId, await answeredLine(batch, n, line.customId, reply));
      }
    }
    await money.endCall(batch, callId);
    if ('dropped' in answer) return;
    return this.#endWithout(n, callId, line, 'error' in answer ? answer.error : GONE);
  }

  /** Asks the route of a line to settle its answer, some times if it has no room or no ledger at the moment. */
  async #answer(line: LineRequest, callId: string, answer: AnsweredRequest): Promise<LineReply | null> {
    const { money, calls, random } = this.#deps;
    for (let tries = 0; ; tries += 1) {
      const reply = await calls.answer(this.#batch, line.body, callId, answer);
      const pauseMs = reply === null || !TEMPORARY.has(reply.status) ? undefined : RETRY_MS[tries];
      if (pauseMs === undefined || !this.#claim.goesOn || !(await money.holds(callId))) return reply;
      await this.#claim.rest(pauseMs * (1 - JITTER * random()));
    }
  }

  #endWithout(
    n: number,
    callId: string,
    { customId }: Pick<LineRequest, 'customId'>,
    error: { code: string; message: string },
  ) {
    return this.#end(n, callId, unansweredLine(this.#batch, n, customId, error));
  }

  /** Notes the call that a line gets. Resolves with false if another gateway has the batch. */
  async #begin(n: number, callId: string): Promise<boolean> {
    const begun = await this.#deps.database.query(SQL.beginLine, [
      this.#batch.id,
      n,
      callId,
      this.#claim.id,
      this.#lost.get(n) ?? 0,
    ]);
    if (begun.length === 0) this.#claim.lose();
    return begun.length > 0;
  }

  /** Stores the result of a line whose call is settled. It must not be lost, so it is stored until that works. */
  async #end(n: number, callId: string, { state, text, tokens }: LineResult): Promise<void> {
    const { database, content, onError } = this.#deps;
    const bytes = Buffer.from(text);
    const sealed = await content.seal(this.#batch.account, bytes);
    const { prompt, cached, completion, reasoning } = tokens;
    const result = [state, sealed, bytes.byteLength, prompt, cached, completion, reasoning, this.#claim.id];
    for (;;) {
      try {
        const ended = await database.query(SQL.endBatchLine, [this.#batch.id, n, callId, ...result]);
        if (ended.length === 0) return this.#claim.lose();
        this.#resultBytes += sealed.byteLength;
        this[state] += 1;
        return;
      } catch (error) {
        onError(error);
        if (!this.#claim.goesOn) return;
        await this.#claim.rest(STORE_AGAIN_MS);
      }
    }
  }
}

const isRefused = (reply: LineReply | HeldRequest): boolean => 'status' in reply && reply.status === NO_MONEY;

/** The lines of a batch in one state. `room`: what their results take, in bytes. */
interface LineSums {
  readonly state: string;
  readonly count: number;
  readonly room: number;
  readonly prompt: number;
  readonly cached: number;
  readonly completion: number;
  readonly reasoning: number;
}

export async function sumsOf(database: Pick<Database, 'query'>, id: string): Promise<readonly LineSums[]> {
  const number = (row: Row, name: string) => Number(row[name] ?? 0);
  return (await database.query(SQL.sumLines, [id])).map((row) => ({
    state: row['state'] as string,
    count: number(row, 'count'),
    room: number(row, 'room'),
    prompt: number(row, 'prompt'),
    cached: number(row, 'cached'),
    completion: number(row, 'completion'),
    reasoning: number(row, 'reasoning'),
  }));
}
