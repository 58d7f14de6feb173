import { createDueWorker, listParam, loadStatements, type Database, type Row } from '#store';
import { createSealedTexts, type SealedTexts, type SealSecret } from '#security';
import { OutboundFailure, type GuardedFetch } from '#network';
import { signatureOf, SIGNATURE } from './webhook-relay.ts';
import { createBudgetPolls } from './budget-polls.ts';

interface BudgetNotice {
  readonly body: Readonly<Record<string, unknown>>;
  /**
   * `waiting`: the webhook will get it, or get it again. `told`: the webhook got it, it was given up, or there is no
   * webhook.
   */
  readonly state: 'waiting' | 'told';
}

/** Sends a notice when spending reaches a percentage of a budget: once per percentage, limit and period. */
export interface BudgetNotices {
  readonly webhooks: AccountWebhooks;
  /** The newest first. */
  list(account: string, limit: number): Promise<readonly BudgetNotice[]>;
  /** Checks the spending and sends due notices. This also happens automatically. */
  run(): Promise<void>;
  /** Removes at most `limit` old notices. Resolves with their number. */
  sweep(limit: number): Promise<number>;
  close(): Promise<void>;
}

interface BudgetNoticesOptions {
  readonly database: Pick<Database, 'query' | 'snapshot' | 'engine'>;
  readonly fetch: GuardedFetch;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: SealSecret;
  readonly now: () => number;
  /** Milliseconds between two checks; null: only `run` checks. Default 10 s. */
  readonly everyMs?: number | null;
  /** Called for each notice, on one gateway of the database. `isOperators`: the operator set the limit. */
  readonly onNotice: (body: Readonly<Record<string, unknown>>, isOperators: boolean) => void;
  /** Called when a notice was given up, because the webhook of its account failed too often. */
  readonly onLost: (lost: { readonly account: string; readonly reason: string }) => void;
  readonly onError: (error: unknown) => void;
}

const SQL = loadStatements(import.meta.url, './sql/notices.sql', [
  'claimDue',
  'endAttempt',
  'listNotices',
  'sweepNotices',
  'putWebhook',
  'findWebhook',
  'deleteWebhook',
  'listAccountWebhooks',
  'replaceSealedWebhook',
]);

const EVERY_MS = 10_000;
const DAY_MS = 86_400_000;
/** Most notices that are sent at the same time, in all and of one account. Each takes at most POST_MS. */
const SENT_MAX = 64;
const ACCOUNT_SENT_MAX = 4;
const POST_MS = 10_000;
/** How long a claimed notice is not sent by another gateway. Must be longer than a request takes. */
const LEASE_MS = 60_000;
const RETRY_MS = 30_000;
const RETRY_MS_MAX = 6 * 3_600_000;
const ATTEMPTS_MAX = 12;
const KEPT_MS = 100 * DAY_MS;
/** An approval has ended by then. */
const KEPT_APPROVAL_MS = 2 * DAY_MS;

export function createBudgetNotices({
  database,
  fetch,
  secret,
  now,
  everyMs = EVERY_MS,
  onNotice,
  onLost,
  onError,
}: BudgetNoticesOptions): BudgetNotices {
  const webhooks = createAccountWebhooks(database, createSealedTexts(secret));
  const poll = createBudgetPolls({ database, now, onNotice });

  /** Resolves with null if the notice arrived or there is no webhook, else with the reason of the failure. */
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
    // The lease expires on its own, so the notice is sent again after a restart.
    if (closed.aborted) return;
    const attempts = Number(row['attempts']);
    const isLast = attempts >= ATTEMPTS_MAX;
    if (reason !== null && isLast) onLost({ account, reason });
    const again = reason === null || isLast ? null : now() + Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (attempts - 1));
    await database.query(SQL.endAttempt, [row['budget']!, row['spend_limit']!, row['percent']!, again]);
  };

  const sent = new Map<string, number>();
  const count = (account: string, more: number) => sent.set(account, (sent.get(account) ?? 0) + more);
  /** A notice was sent, and others wait for its place. */
  let isFreed = false;
  let isWaiting = false;

  const worker = createDueWorker({
    async turn({ closed, jobs, start, wake }) {
      // What is spent is looked at in time, not after each notice.
      if (!isFreed) await poll();
      isFreed = false;
      const busy = [...sent].filter(([, notices]) => notices >= ACCOUNT_SENT_MAX).map(([account]) => account);
      const limits = [SENT_MAX - jobs, ACCOUNT_SENT_MAX, listParam(busy)];
      const due = jobs < SENT_MAX ? await database.query(SQL.claimDue, [now(), now() + LEASE_MS, ...limits]) : [];
      isWaiting = jobs >= SENT_MAX || due.length > 0;
      for (const row of due) {
        const account = row['account'] as string;
        count(account, 1);
        start(
          () => send(row, closed),
          () => {
            if (count(account, -1).get(account) === 0) sent.delete(account);
            isFreed = isWaiting;
            if (isWaiting) wake();
          },
        );
      }
    },
    pauseMs: everyMs,
    onError,
  });

  return {
    webhooks,
    list: async (account, limit) =>
      (await database.query(SQL.listNotices, [account, limit])).map((row) => ({
        body: JSON.parse(row['body'] as string) as Readonly<Record<string, unknown>>,
        state: row['due_at'] === null ? 'told' : 'waiting',
      })),
    run: worker.run,
    sweep: async (limit) =>
      (await database.query(SQL.sweepNotices, [now() - KEPT_MS, limit, now() - KEPT_APPROVAL_MS])).length,
    close: worker.close,
  };
}

/** The webhook for budget notices of an account. */
interface AccountWebhook {
  readonly url: string;
  /** The key that signs the requests; null for no signature. */
  readonly secret: string | null;
}

interface AccountWebhooks {
  find(account: string): Promise<AccountWebhook | null>;
  put(account: string, webhook: AccountWebhook): Promise<void>;
  /** False if there was none. */
  delete(account: string): Promise<boolean>;
  /** Seals those anew that a former secret has sealed, or only counts them. Resolves with their number. */
  reseal(mode: 'write' | 'count'): Promise<number>;
}

const sealOf = (account: string): string => `account webhook ${account}`;

/** Webhooks, stored encrypted in the database. */
function createAccountWebhooks(database: Pick<Database, 'query'>, texts: SealedTexts): AccountWebhooks {
  return {
    async find(account) {
      const [row] = await database.query(SQL.findWebhook, [account]);
      const text = row ? texts.open(sealOf(account), row['sealed'] as string) : null;
      return text === null ? null : (JSON.parse(text) as AccountWebhook);
    },
    async put(account, webhook) {
      const sealed = texts.seal(sealOf(account), JSON.stringify(webhook));
      await database.query(SQL.putWebhook, [account, sealed]);
    },
    delete: async (account) => (await database.query(SQL.deleteWebhook, [account])).length > 0,
    async reseal(mode) {
      let count = 0;
      for (const row of await database.query(SQL.listAccountWebhooks)) {
        const [account, sealed] = [row['account'] as string, row['sealed'] as string];
        const anew = texts.reseal(sealOf(account), sealed);
        if (anew !== null)
          count +=
            mode === 'count' ? 1 : (await database.query(SQL.replaceSealedWebhook, [account, sealed, anew])).length;
      }
      return count;
    },
  };
}
