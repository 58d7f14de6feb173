import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { type JobPlace, type JsonLimits, OWN_TURN_BYTES, ownTurn, Places } from '#wire';
import type { Pipeline, ReplyHold } from '#call';
import { requestIdAt } from '#json-rpc';
import type { Context, Offered } from './dispatch.ts';
import { type BatchEntry, type Body, readBody } from './read-body.ts';
import { CODE, toRpcFault } from './errors-rpc.ts';
import { carriedOf, hasCredential } from './inner-request.ts';
import { errorOf, namelessError, replyText, type Outcome } from './outcome.ts';

/** An HTTP reply whose body is written in pieces. A reply without pieces is HTTP 204. */
interface RpcReply {
  readonly pieces: readonly Buffer[];
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

interface RpcAnswerOptions {
  readonly pipeline: Pick<Pipeline, 'visitor' | 'count'>;
  readonly hold: (account: string) => ReplyHold;
  readonly limits: JsonLimits;
  readonly replyBytesMax: number;
  readonly offered: () => Offered;
  readonly report: (error: unknown, request: FastifyRequest) => void;
}

/**
 * Pages of this gateway that are read and written into replies at the same time, because a list can have several MiB.
 * A report that takes long leaves its place to others.
 */
const PAGES = { total: 16, perShare: 16, longMs: 1_000, longTotal: 48 };

/** null: the method needs no place. */
type PlaceOf = (method: string) => (() => Promise<JobPlace | null>) | null;

interface Answering {
  readonly offered: Offered;
  readonly context: Context;
  readonly hold: ReplyHold;
  readonly placeOf: PlaceOf;
}

/** Answers one request. `holds`: receives the ReplyHold of the reply; release it once the client has read the reply. */
type AnswerBody = (request: FastifyRequest, gone: AbortSignal, holds: (hold: ReplyHold) => void) => Promise<RpcReply>;

const SILENCE: RpcReply = { pieces: [], status: 204, headers: {} };
const [OPEN, COMMA, CLOSE] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')];

/** Runs the entries of a body. Rejects with GatewayError if the whole body is refused. */
export function createAnswerBody(options: RpcAnswerOptions): AnswerBody {
  const { pipeline, limits, replyBytesMax, report } = options;
  const pages = new Places(PAGES);

  async function answerOne(entry: BatchEntry, { offered, context, hold, placeOf }: Answering) {
    if (entry.kind === 'silent') return SILENCE;
    if (entry.kind === 'refused') return plain(replyText(entry.idText, refused(entry)));
    const { idText, method } = entry.message;
    const run = () => offered.dispatch(entry.message, context);
    const job = { idText, billed: offered.isBilled(method), place: placeOf(method), run };
    const { bytes, status, headers } = await createHeldReplies(hold, Infinity).replyTo(job);
    return { pieces: [bytes], status, headers };
  }

  async function answerBatch(
    entries: readonly BatchEntry[],
    { offered: { dispatch, isBilled, isClosed }, context, hold, placeOf }: Answering,
  ): Promise<RpcReply> {
    if (context.idempotencyKey !== null) return plain(KEY_OF_BATCH);
    // A batch without a credential is refused at once. Otherwise one small request of a stranger could cause 50 checks
    // of a missing credential.
    const needsCredential = (entry: BatchEntry) => entry.kind === 'call' && isClosed(entry.message.method);
    if (!hasCredential(context.carried) && entries.some(needsCredential)) {
      const { status, headers } = NO_CREDENTIAL;
      return { pieces: [Buffer.from(replyText('null', NO_CREDENTIAL))], status, headers };
    }
    const replies = await runBatch(entries, {
      held: createHeldReplies(hold, replyBytesMax),
      gone: context.gone,
      isBilled,
      placeOf,
      run: (message, place) => dispatch(message, { ...context, requestId: requestIdAt(context.requestId, place) }),
    });
    if (replies.length === 0) return SILENCE;
    const pieces = [OPEN, ...replies.flatMap((reply, at) => (at === 0 ? [reply] : [COMMA, reply])), CLOSE];
    return { pieces, status: 200, headers: {} };
  }

  return async (request, gone, holds) => {
    const body: Body = await readBody((request.body as Buffer | undefined) ?? Buffer.alloc(0), limits);
    if (body.kind === 'refused') return plain(namelessError(body.error.code, body.error.message));
    const offered = options.offered();
    const visitor = await pipeline.visitor(request.headers, request.ip);
    const { socket } = request.raw;
    // A destroyed socket no longer says who its peer was.
    if (gone.aborted || socket.destroyed) return SILENCE;
    const hold = options.hold(visitor.account);
    holds(hold);
    const { 'idempotency-key': key } = request.headers;
    const context: Context = {
      carried: carriedOf(request.raw.rawHeaders),
      peer: socket.remoteAddress ?? request.ip,
      requestId: request.id,
      gone,
      idempotencyKey: typeof key === 'string' ? key : null,
      count: () => pipeline.count(visitor, 1),
      report: (error) => report(error, request),
    };
    const takePage = () => pages.take(visitor.account, { stop: gone });
    const placeOf = (method: string) => (offered.isPage(method) ? takePage : null);
    const answering: Answering = { offered, context, hold, placeOf };
    return body.kind === 'single' ? answerOne(body.entry, answering) : answerBatch(body.entries, answering);
  };
}

const plain = (text: string): RpcReply => ({ pieces: [Buffer.from(text)], status: 200, headers: {} });

const KEY_OF_BATCH = namelessError(
  CODE.invalidRequest,
  'An Idempotency-Key applies to one call. In a batch, give each entry its own key in params._meta["tollgate/idempotency-key"]',
);

const NO_CREDENTIAL = errorOf(
  toRpcFault(
    new GatewayError(
      'unauthorized',
      'This batch calls for an account: send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…", or sign in with a wallet: /api/v1/auth/nonce shows how',
      { headers: { 'www-authenticate': 'Bearer, SIWx' } },
    ),
  ),
);

const CONCURRENCY = 8;

type CallMessage = Extract<BatchEntry, { kind: 'call' }>['message'];

interface BatchOptions {
  readonly held: HeldReplies;
  readonly gone: AbortSignal;
  isBilled(method: string): boolean;
  readonly placeOf: PlaceOf;
  run(message: CallMessage, place: number): Promise<Outcome>;
}

/**
 * The replies to a batch, in the order of its entries. Notifications have no reply. When the client has left, no
 * further entry begins. Only one entry begins in each turn of the event loop, because answering one takes milliseconds
 * if there are many services.
 */
export async function runBatch(
  entries: readonly BatchEntry[],
  { held, gone, isBilled, placeOf, run }: BatchOptions,
): Promise<Buffer[]> {
  const replies: (Buffer | null)[] = entries.map(() => null);
  let place = 0;
  let turn: Promise<unknown> = Promise.resolve();
  const jobOf = (entry: Exclude<BatchEntry, { kind: 'silent' }>, at: number): EntryJob => {
    if (entry.kind === 'refused')
      return { idText: entry.idText, billed: false, place: null, run: async () => refused(entry) };
    const { idText, method } = entry.message;
    return { idText, billed: isBilled(method), place: placeOf(method), run: () => run(entry.message, at) };
  };
  const work = async () => {
    while (place < entries.length) {
      const at = place++;
      const entry = entries[at]!;
      if (entry.kind === 'silent') continue;
      turn = turn.then(() => nextTurn());
      await turn;
      if (gone.aborted) return;
      replies[at] = (await held.replyTo(jobOf(entry, at))).bytes;
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, entries.length) }, work));
  return replies.filter((reply) => reply !== null);
}

/** The outcome of an entry that is not a valid request. */
const refused = ({ error }: Extract<BatchEntry, { kind: 'refused' }>): Outcome =>
  errorOf({ error, status: 200, headers: {} });

interface EntryJob {
  readonly idText: string;
  /** Its answer may have been paid for, so it is always sent. */
  readonly billed: boolean;
  /** Taken before it runs, and held until its reply is kept. */
  readonly place: ReturnType<PlaceOf>;
  run(): Promise<Outcome>;
}

/** The replies of one HTTP request, which stay in memory until the client has read them. */
interface HeldReplies {
  /** The reply to one entry: its outcome, or an error if it was not run or if its reply is too large to send. */
  replyTo(job: EntryJob): Promise<Outcome & { readonly bytes: Buffer }>;
}

/**
 * Limits the memory for the replies of one HTTP request to `bytesMax` together and to the room of `hold`. The answer to
 * a billed entry is always sent, so without room such an entry must not begin.
 */
export function createHeldReplies(hold: ReplyHold, bytesMax: number): HeldReplies {
  let bytes = 0;
  let full = false;

  const toReply = (idText: string, outcome: Outcome) => ({
    ...outcome,
    bytes: Buffer.from(replyText(idText, outcome)),
  });
  const keep = <R extends { readonly bytes: Buffer }>(reply: R): R => {
    bytes += reply.bytes.byteLength;
    hold.mustKeep(bytes);
    return reply;
  };
  const refuse = (idText: string, error: GatewayError) => keep(toReply(idText, errorOf(toRpcFault(error))));
  const runAndKeep = async ({ idText, billed, run }: EntryJob) => {
    if (full || bytes >= bytesMax) return refuse(idText, notRun());
    if (billed && hold.shareIsFull()) return refuse(idText, noRoom());
    const outcome = await run();
    if (outcome.text.length > OWN_TURN_BYTES) await ownTurn();
    const reply = toReply(idText, outcome);
    if (!billed && reply.bytes.byteLength > ALWAYS_TOLD_BYTES) {
      if (bytes + reply.bytes.byteLength > bytesMax) {
        full = true;
        return refuse(idText, tooLarge());
      }
      if (!hold.fits(bytes + reply.bytes.byteLength)) return refuse(idText, noRoom());
    }
    return keep(reply);
  };
  return {
    async replyTo(job) {
      const place = await job.place?.();
      try {
        return await runAndKeep(job);
      } finally {
        place?.release();
      }
    },
  };
}

/** Answers up to this size are always sent, because asking again would cost more. 50 of them are 200 KiB. */
const ALWAYS_TOLD_BYTES = 4 * 1024;

const notRun = () =>
  new GatewayError(
    'payload_too_large',
    'This entry was not run: the replies to the entries before it are already very large. Send it in another batch',
  );

const tooLarge = () =>
  new GatewayError(
    'payload_too_large',
    'The reply to this entry is too large for a batch: send the entry alone, as one request without an array',
  );

const noRoom = () =>
  new GatewayError(
    'service_unavailable',
    'Large replies that were not read yet use all memory for large replies. Read your replies, and retry in a moment',
    {
      retryAfterS: 2,
    },
  );
