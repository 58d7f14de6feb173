import { createSealedTexts } from '#wire';
import { loadStatement, type Database } from '#store';
import { createKeptBytes } from '#gateway';

interface KeptLimits {
  readonly keepMs: number;
  readonly accountBytesMax: number;
  readonly accountCountMax: number;
  readonly bytesMax: number;
  readonly backgroundCountMax: number;
}

export interface KeptResponsesOptions {
  readonly database: Pick<Database, 'engine' | 'query' | 'batch'>;
  readonly limits: KeptLimits;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: Uint8Array;
  readonly now: () => number;
}

/** The room for kept responses, and the encryption of what is in it. */
export interface ResponseRoom {
  seal(account: string, text: string): string;
  /** null if the text was sealed by a gateway with another identity. */
  open(account: string, sealed: string): string | null;
  /** Called after a response of this size was stored. Deletes what the account keeps beyond its share, now and then. */
  added(account: string, bytes: number): Promise<void>;
}

const SUM = loadStatement(import.meta.url, './sql/sum-bytes.sql');
const DELETE_EXCESS = loadStatement(import.meta.url, './sql/delete-excess.sql');

export function createResponseRoom({ database, limits, secret, now }: KeptResponsesOptions): ResponseRoom {
  const { accountBytesMax, accountCountMax, bytesMax } = limits;
  const texts = createSealedTexts(secret);
  const added = createKeptBytes(accountBytesMax);
  const ownerOf = (account: string) => `response of ${account}`;

  /** Deletes what the account keeps beyond its share: it may keep as much as is left for others. */
  async function deleteExcess(account: string): Promise<void> {
    const [row] = await database.query(SUM, [account]);
    const others = Number(row!['total']) - Number(row!['own']);
    const share = Math.max(0, Math.floor((bytesMax - others) / 2));
    await database.query(DELETE_EXCESS, [account, Math.min(accountBytesMax, share), accountCountMax, now()]);
  }

  return {
    seal: (account, text) => texts.seal(ownerOf(account), text),
    open: (account, sealed) => texts.open(ownerOf(account), sealed),
    async added(account, bytes) {
      // A response counts at least as much as one of the most that an account may have.
      if (added.add(account, Math.max(bytes, accountBytesMax / accountCountMax))) await deleteExcess(account);
    },
  };
}
