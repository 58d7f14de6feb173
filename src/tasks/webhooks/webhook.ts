import type { TaskKey, TaskOwner } from '../task.ts';

/** A client's wish to be told of what happens to a task: the address, and how. */
export interface Webhook {
  /** The client's name of it, one of each owner's of a task. */
  readonly name: string;
  /** The protocol's word for how its receiver is spoken to, such as a version. */
  readonly form: string;
  readonly url: string;
  /** Headers of every delivery besides the content type. Secrets among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Signs each delivery, see signatureOf; default: deliveries are not signed. */
  readonly signingKey?: string;
  /** The protocol's own, for who asks for the webhook; JSON text. Secrets among it. */
  readonly notes: string;
}

/** An event that a receiver is told, once. */
export interface WebhookEvent {
  /**
   * Texts that are the same say that it is the same that happened, which is told once; null: it is never the same
   * as anything before.
   */
  readonly identity: string | null;
  /**
   * The content for receivers of a form; null where they are not told. At most WEBHOOK_BODY_BYTES_MAX, or it is not
   * sent.
   */
  readonly contentOf: (form: string) => WebhookContent | null;
}

export interface WebhookContent {
  readonly contentType: string;
  readonly body: string;
}

/** News that will not reach a receiver. Nothing here is secret. */
export interface LostDelivery {
  readonly account: string;
  readonly service: string;
  readonly taskId: string;
  /** Scheme, host and port of the receiver; null where none had been chosen yet. */
  readonly receiver: string | null;
  readonly reason: string;
}

/** Webhooks in the database. Methods reject with the database's error when it cannot be reached. */
export interface WebhookStore {
  /** False where the task or the account has as many as it may. One of the same name is replaced. */
  set(key: TaskKey, owner: TaskOwner, webhook: Webhook): Promise<boolean>;
  /** The owner's own, oldest first: what an account set itself, or what was set under one running call. */
  list(key: TaskKey, owner: TaskOwner): Promise<readonly Webhook[]>;
  /** Whether anybody's webhook is there for the task. */
  has(key: TaskKey): Promise<boolean>;
  /** False when there was none. What waits for it is not sent any more. */
  delete(key: TaskKey, owner: TaskOwner, name: string): Promise<boolean>;
  /** Removes those that nothing was sent to for long, at most `limit`; returns how many. */
  sweep(limit: number): Promise<number>;
}

export const WEBHOOKS_PER_TASK_MAX = 10;
export const WEBHOOKS_PER_ACCOUNT_MAX = 10_000;
export const WEBHOOK_NAME_CHARS_MAX = 256;
export const WEBHOOK_BODY_BYTES_MAX = 1024 * 1024;
/** How long a webhook is kept after it was set, or something was queued for it. */
export const WEBHOOK_TTL_MS = 30 * 24 * 3_600_000;
