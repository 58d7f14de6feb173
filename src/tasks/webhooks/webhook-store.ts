import { randomUUID } from 'node:crypto';
import { loadStatement, type Database } from '#store';
import type { SealedTexts } from '#wire';
import type { TaskKey, TaskOwner } from '../task.ts';
import {
  WEBHOOK_TTL_MS,
  WEBHOOKS_PER_ACCOUNT_MAX,
  WEBHOOKS_PER_TASK_MAX,
  type Webhook,
  type WebhookStore,
} from './webhook.ts';

const PUT = loadStatement(import.meta.url, './sql/put-webhook.sql');
const LIST = loadStatement(import.meta.url, './sql/list-webhooks.sql');
const HAS = loadStatement(import.meta.url, './sql/has-webhook.sql');
const DELETE = loadStatement(import.meta.url, './sql/delete-webhook.sql');
const SWEEP = loadStatement(import.meta.url, './sql/sweep-webhooks.sql');

interface WebhookStoreOptions {
  readonly database: Pick<Database, 'query'>;
  readonly texts: SealedTexts;
  readonly now: () => number;
}

/** The encrypted part of a webhook. */
type Receiver = Pick<Webhook, 'url' | 'headers' | 'notes' | 'signingKey'>;

/** The context to which a sealed text is bound. In another row it cannot be opened. */
export const sealOf = ({ primitive, service, taskId }: TaskKey, { account, within }: TaskOwner, name: string): string =>
  JSON.stringify([primitive, service, taskId, account, within, name]);

/** Opens a sealed receiver. null if it was sealed with another secret or for another row. */
export function openReceiver(texts: SealedTexts, of: string, sealed: string): Receiver | null {
  const text = texts.open(of, sealed);
  return text === null ? null : (JSON.parse(text) as Receiver);
}

export function createWebhookStore({ database, texts, now }: WebhookStoreOptions): WebhookStore {
  const keyOf = ({ primitive, service, taskId }: TaskKey) => [primitive, service, taskId];

  return {
    async set(key, owner, { name, form, ...receiver }) {
      const { url } = receiver;
      const sealed = texts.seal(sealOf(key, owner, name), JSON.stringify(receiver));
      const at = now();
      const rows = await database.query(PUT, [
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
      const rows = await database.query(LIST, [...keyOf(key), owner.account, owner.within ?? '', now()]);
      return rows.flatMap((row) => {
        const name = row['name'] as string;
        const receiver = openReceiver(texts, sealOf(key, owner, name), row['sealed'] as string);
        return receiver === null ? [] : [{ name, form: row['form'] as string, ...receiver }];
      });
    },

    has: async (key) => (await database.query(HAS, keyOf(key))).length > 0,
    delete: async (key, owner, name) =>
      (await database.query(DELETE, [...keyOf(key), owner.account, owner.within ?? '', name])).length > 0,
    sweep: async (limit) => (await database.query(SWEEP, [now(), limit])).length,
  };
}
