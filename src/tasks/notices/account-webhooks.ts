import { loadStatement, type Database } from '#store';
import type { SealedTexts } from '#wire';

/** The webhook for budget notices of an account. */
interface AccountWebhook {
  readonly url: string;
  /** The key that signs the requests; null for no signature. */
  readonly secret: string | null;
}

export interface AccountWebhooks {
  find(account: string): Promise<AccountWebhook | null>;
  put(account: string, webhook: AccountWebhook): Promise<void>;
  /** False if there was none. */
  delete(account: string): Promise<boolean>;
}

const PUT = loadStatement(import.meta.url, './sql/put-webhook.sql');
const FIND = loadStatement(import.meta.url, './sql/find-webhook.sql');
const DELETE = loadStatement(import.meta.url, './sql/delete-webhook.sql');

const sealOf = (account: string): string => `account webhook ${account}`;

/** Webhooks, stored encrypted in the database. */
export function createAccountWebhooks(database: Pick<Database, 'query'>, texts: SealedTexts): AccountWebhooks {
  return {
    async find(account) {
      const [row] = await database.query(FIND, [account]);
      const text = row ? texts.open(sealOf(account), row['sealed'] as string) : null;
      return text === null ? null : (JSON.parse(text) as AccountWebhook);
    },
    async put(account, webhook) {
      const sealed = texts.seal(sealOf(account), JSON.stringify(webhook));
      await database.query(PUT, [account, sealed]);
    },
    delete: async (account) => (await database.query(DELETE, [account])).length > 0,
  };
}
