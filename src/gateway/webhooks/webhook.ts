import { createHmac, randomUUID } from 'node:crypto';
import { loadStatements, type Database } from '#store';
import type { SealedTexts } from '#security';
import type { TaskKey, TaskOwner } from '#tasks';

/** A client's registration for notifications about a task. */
export interface Webhook {
  /** The client's name for the webhook, unique per task and owner. */
  readonly name: string;
  /** The form of notifications that the receiver expects, in the protocol's terms, such as a version. */
  readonly form: string;
  readonly url: string;
  /** Additional headers of every delivery. They may contain secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** The key that signs each delivery, `whsec_` and 32 bytes in base64, see signatureOf. Default: no signature. */
  readonly signingKey?: string;
  /** JSON text of the protocol, to show the webhook to its owner. It may contain secrets. */
  readonly notes: string;
}

/** An event, which each receiver gets once. */
export interface WebhookEvent {
  /**
   * Events with the same identity are the same event and are delivered once. null: the event differs from every earlier
   * event.
   */
  readonly identity: string | null;
  /** No other event of the task follows, so its webhooks expire sooner (see LAST_EVENT_TTL_MS). Default false. */
  readonly isLast?: boolean;
  /**
   * The content for receivers of a form; null if they do not get the event. A body above WEBHOOK_BODY_BYTES_MAX is not
   * sent.
   */
  readonly contentOf: (form: string) => WebhookContent | null;
}

export interface WebhookContent {
  readonly contentType: string;
  readonly body: string;
}

/** An event that a receiver will not get. It contains no secrets. */
export interface LostDelivery {
  readonly account: string;
  readonly service: string;
  readonly taskId: string;
  /** Scheme, host and port of the receiver; null if the event was not even queued. */
  readonly receiver: string | null;
  readonly reason: string;
}

/** Webhooks, stored in the database. Methods reject with the database's error if it cannot be reached. */
export interface WebhookStore {
  /**
   * Adds a webhook, or replaces the one with the same name. False if the task or the account has the most webhooks
   * allowed.
   */
  set(key: TaskKey, owner: TaskOwner, webhook: Webhook): Promise<boolean>;
  /**
   * The owner's webhooks, oldest first: those that the account registered directly, or those of one running call or
   * key.
   */
  list(key: TaskKey, owner: TaskOwner): Promise<readonly Webhook[]>;
  /** True if the task has a webhook of any owner. */
  has(key: TaskKey): Promise<boolean>;
  /** Deletes a webhook and its queue. False if there was none. */
  delete(key: TaskKey, owner: TaskOwner, name: string): Promise<boolean>;
  /** Removes expired webhooks (see WEBHOOK_TTL_MS), at most `limit`. Resolves with their number. */
  sweep(limit: number): Promise<number>;
}

export const WEBHOOKS_PER_TASK_MAX = 10;
const WEBHOOKS_PER_ACCOUNT_MAX = 10_000;
export const WEBHOOK_NAME_CHARS_MAX = 256;
export const WEBHOOK_BODY_BYTES_MAX = 1024 * 1024;
/** Lifetime of a webhook since it was registered or its last delivery was queued. */
export const WEBHOOK_TTL_MS = 30 * 24 * 3_600_000;
/**
 * Lifetime of a webhook since the last event of its task was queued. It is much longer than the attempts take. All
 * webhooks count for the limit of their account until they expire.
 */
export const LAST_EVENT_TTL_MS = 24 * 3_600_000;

const SQL = loadStatements(import.meta.url, './sql/webhooks.sql', [
  'putWebhook',
  'listWebhooks',
  'hasWebhook',
  'deleteWebhook',
  'sweepWebhooks',
]);

interface WebhookStoreOptions {
  readonly database: Pick<Database, 'query'>;
  readonly texts: SealedTexts;
  readonly now: () => number;
}

/** The encrypted part of a webhook. */
type Receiver = Pick<Webhook, 'url' | 'headers' | 'notes' | 'signingKey'>;

/**
 * The signing key of what an owner begins, as its creator is told it. A restricted key and a run have one of their own:
 * with that of the account, they could sign messages to the receivers of all its other keys. `secret`: 32 bytes that
 * all gateways of one database share.
 */
export function signingKeyOf(
  secret: Uint8Array,
  { account, within }: TaskOwner,
  encoding: 'base64' | 'base64url',
): string {
  // No id of an account begins with a bracket, so the texts of different owners differ.
  const owner = within === null ? account : JSON.stringify([account, within]);
  return `whsec_${createHmac('sha256', secret).update(owner).digest(encoding)}`;
}

/** The context to which a sealed text is bound. In another row it cannot be opened. */
export const sealOf = ({ primitive, service, taskId }: TaskKey, { account, within }: TaskOwner, name: string): string =>
  JSON.stringify([primitive, service, taskId, account, within, name]);

/** Opens a sealed receiver. null if it was sealed with another secret or for another row. */
export function openReceiver(texts: SealedTexts, owner: string, sealed: string): Receiver | null {
  const text = texts.open(owner, sealed);
  return text === null ? null : (JSON.parse(text) as Receiver);
}

export function createWebhookStore({ database, texts, now }: WebhookStoreOptions): WebhookStore {
  const keyOf = ({ primitive, service, taskId }: TaskKey) => [primitive, service, taskId];

  return {
    async set(key, owner, { name, form, ...receiver }) {
      const { url } = receiver;
      const sealed = texts.seal(sealOf(key, owner, name), JSON.stringify(receiver));
      const at = now();
      const rows = await database.query(SQL.putWebhook, [
        randomUUID(),
        owner.account,
        owner.within ?? '',
        ...keyOf(key),
        name,
        form,
        new URL(url).origin,
        sealed,
        at,
        at + WEBHOOK_TTL_MS,
        WEBHOOKS_PER_TASK_MAX,
        WEBHOOKS_PER_ACCOUNT_MAX,
      ]);
      return rows.length > 0;
    },

    async list(key, owner) {
      const rows = await database.query(SQL.listWebhooks, [...keyOf(key), owner.account, owner.within ?? '', now()]);
      return rows.flatMap((row) => {
        const name = row['name'] as string;
        const receiver = openReceiver(texts, sealOf(key, owner, name), row['sealed'] as string);
        return receiver === null ? [] : [{ name, form: row['form'] as string, ...receiver }];
      });
    },

    has: async (key) => (await database.query(SQL.hasWebhook, keyOf(key))).length > 0,
    delete: async (key, owner, name) =>
      (await database.query(SQL.deleteWebhook, [...keyOf(key), owner.account, owner.within ?? '', name])).length > 0,
    sweep: async (limit) => (await database.query(SQL.sweepWebhooks, [now(), limit])).length,
  };
}
