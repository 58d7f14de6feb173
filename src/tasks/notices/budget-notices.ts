import type { MicroUsd } from '#billing';
import { periodAt } from '#auth/accounts';
import { createDueWorker, loadStatement, type Database, type Row } from '#store';
import { createSealedTexts, dropOldest } from '#wire';
import { OutboundFailure, type GuardedFetch } from '#network';
import { signatureOf, SIGNATURE } from '../webhooks/send-delivery.ts';
import { createAccountWebhooks, type AccountWebhooks } from './account-webhooks.ts';
import { keyBudget, limitBudgets, noticeBody, periodNames, reached, type WatchedBudget } from './threshold.ts';

/** A notice as it was told. */
interface BudgetNotice {
  readonly body: Readonly<Record<string, unknown>>;
  /** `waiting`: the webhook gets it, or gets it again. `told`: it did, it was given up, or nobody waits for it. */
  readonly state: 'waiting' | 'told';
}

/** Tells of budgets that are spent to a percentage: once for each percentage of each limit in each period. */
export interface BudgetNotices {
  readonly webhooks: AccountWebhooks;
  /** The newest first. */
  list(account: string, limit: number): Promise<readonly BudgetNotice[]>;
  /** Looks what was spent, and sends what is due. It happens by itself, too. */
  run(): Promise<void>;
  /** Forgets at most `limit` old notices; returns how many. */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}

interface BudgetNoticesOptions {
  readonly database: Pick<Database, 'query'>;
  readonly fetch: GuardedFetch;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: Uint8Array;
  readonly now: () => number;
  /** The longest that a call or a task goes on, milliseconds: its charge counts in the period in which it began. */
  readonly callMsMax: number;
  /** Milliseconds between two looks; null: only `run` looks. Default 10 s. */
  readonly everyMs?: number | null;
  /** Told of each notice, on one gateway of the database. */
  readonly onNotice: (body: Readonly<Record<string, unknown>>) => void;
  /** The webhook of an account was given up. */
  readonly onLost: (lost: { readonly account: string; readonly reason: string }) => void;
  readonly onError: (error: unknown) => void;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const WATCHED_LIMITS = load('watched-limits');
const WATCHED_KEYS = load('watched-keys');
const NOTE = load('note');
const CLAIM = load('claim-due');
const END = load('end-attempt');
const LIST = load('list-notices');
const SWEEP = load('sweep-notices');

const EVERY_MS = 10_000;
const PAGE = 500;
/** A period is looked at as before for this long after its end. */
const PERIOD_GRACE_MS = 60_000;
/** Pause between looks at periods that ended before that. */
const PAST_EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
const NOTED_MAX = 20_000;
const CLAIMED = 20;
const POST_MS = 10_000;
/** Longer than a post takes: until then no other gateway sends it. */
const LEASE_MS = 60_000;
const RETRY_MS = 30_000;
const RETRY_MS_MAX = 6 * 3_600_000;
const ATTEMPTS_MAX = 12;
const KEPT_MS = 100 * DAY_MS;

export function createBudgetNotices({
  database,
  fetch,
  secret,
  now,
  callMsMax,
  everyMs = EVERY_MS,
  onNotice,
  onLost,
  onError,
}: BudgetNoticesOptions): BudgetNotices {
  const webhooks = createAccountWebhooks(database, createSealedTexts(secret));
  /** Notices that are in the table already, so that no look writes them again. */
  const noted = new Map<string, true>();

  /** What was spent of each budget when it was looked at last. */
  const spentBefore = new Map<string, MicroUsd>();
  let lookedAtPast = -Infinity;

  /**
   * What is told of a budget. Of a period that is over for long: what calls have reached that were settled since the
   * last look. All of it would be told as well where a limit is lowered afterwards.
   */
  const toTell = (budget: WatchedBudget, isPast: boolean): readonly number[] => {
    const { id, spent } = budget;
    const before = spentBefore.get(id);
    spentBefore.delete(id);
    dropOldest(spentBefore, NOTED_MAX - 1);
    spentBefore.set(id, spent);
    if (!isPast) return reached(budget);
    if (before === undefined || before === spent) return [];
    const then = reached({ ...budget, spent: before });
    return reached(budget).filter((percent) => !then.includes(percent));
  };

  const note = async (budget: WatchedBudget, isPast: boolean): Promise<void> => {
    const { id, limit, account } = budget;
    for (const percent of toTell(budget, isPast)) {
      const name = `${id} ${limit} ${percent}`;
      if (noted.has(name)) continue;
      const at = now();
      const body = noticeBody(budget, percent, at);
      const isNew =
        (await database.query(NOTE, [id, limit, percent, account, at, JSON.stringify(body), at])).length > 0;
      dropOldest(noted, NOTED_MAX - 1);
      noted.set(name, true);
      if (isNew) onNotice(body);
    }
  };

  /** Looks at the periods of an instant. Those that ended before `past` are over for long. */
  const look = async (at: number, past = -Infinity): Promise<void> => {
    const isPast = ({ limitReset }: WatchedBudget) => limitReset !== null && periodAt(limitReset, at).end <= past;
    const periods = periodNames(at);
    let [account, subject] = ['', ''];
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_LIMITS, [...periods, account, subject, PAGE]);
      for (const row of rows) for (const budget of limitBudgets(row, at)) await note(budget, isPast(budget));
      [account, subject] = [rows.at(-1)?.['account'] as string, rows.at(-1)?.['subject'] as string];
    }
    let hash = '';
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_KEYS, [...periods, hash, PAGE]);
      for (const row of rows) {
        const budget = keyBudget(row);
        await note(budget, isPast(budget));
      }
      hash = rows.at(-1)?.['hash'] as string;
    }
  };

  /** null where it arrived, else why not. */
  const post = async (account: string, body: string, closed: AbortSignal): Promise<string | null> => {
    const webhook = await webhooks.find(account);
    if (webhook === null) return null;
    const signed =
      webhook.secret === null ? {} : { [SIGNATURE]: signatureOf(webhook.secret, Math.floor(now() / 1_000), body) };
    const headers = { 'content-type': 'application/json', ...signed };
    try {
      const reply = await fetch(webhook.url, {
        method: 'POST',
        headers,
        body,
        timeoutMs: POST_MS,
        bodyBytesMax: 0,
        signal: closed,
      });
      return reply.status >= 200 && reply.status < 300 ? null : `the receiver answered ${reply.status}`;
    } catch (error) {
      return error instanceof OutboundFailure ? error.message : 'the call failed';
    }
  };

  const send = async (row: Row, closed: AbortSignal): Promise<void> => {
    const account = row['account'] as string;
    const reason = await post(account, row['body'] as string, closed);
    // The lease ends by itself: it is sent again after a restart.
    if (closed.aborted) return;
    const attempts = Number(row['attempts']);
    const isLast = attempts >= ATTEMPTS_MAX;
    if (reason !== null && isLast) onLost({ account, reason });
    const again = reason === null || isLast ? null : now() + Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (attempts - 1));
    await database.query(END, [row['budget']!, row['spend_limit']!, row['percent']!, again]);
  };

  const worker = createDueWorker({
    async turn({ closed, start }) {
      const at = now();
      if (Math.abs(at - lookedAtPast) >= PAST_EVERY_MS) {
        const past = at - PERIOD_GRACE_MS;
        for (let day = past - DAY_MS; day > at - callMsMax - DAY_MS; day -= DAY_MS) await look(day, past);
        lookedAtPast = at;
      }
      const before = at - PERIOD_GRACE_MS;
      if (periodNames(before).join() !== periodNames(at).join()) await look(before);
      await look(at);
      const due = await database.query(CLAIM, [now(), now() + LEASE_MS, CLAIMED]);
      for (const row of due) start(() => send(row, closed));
      return due.length === CLAIMED;
    },
    pauseMs: everyMs,
    onError,
  });

  return {
    webhooks,
    list: async (account, limit) =>
      (await database.query(LIST, [account, limit])).map((row) => ({
        body: JSON.parse(row['body'] as string) as Readonly<Record<string, unknown>>,
        state: row['due_at'] === null ? 'told' : 'waiting',
      })),
    run: worker.run,
    sweep: async (limit) => (await database.query(SWEEP, [now() - KEPT_MS, limit])).length,
    close: worker.close,
  };
}
