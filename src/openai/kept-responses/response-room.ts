import { createSealedTexts, type SealSecret } from '#security';
import { loadStatements, type Database } from '#store';
import { createKeptBytes } from '#call';

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
  /** The longest that a call may be charged after it began, in milliseconds. */
  readonly longestLockMs: number;
  /** 32 bytes that all gateways of one database share. */
  readonly secret: SealSecret;
  readonly now: () => number;
}

/** The room for kept responses, and the encryption of what is in it. */
export interface ResponseRoom {
  seal(account: string, text: string): string;
  /** null if the text was sealed by a gateway with another identity. */
  open(account: string, sealed: string): string | null;
  /**
   * Called before a response of this size is stored. Now and then it deletes what accounts keep beyond their share.
   * Resolves with false if the response is more than the share of one account.
   */
  fits(account: string, bytes: number): Promise<boolean>;
  /** Called after it was stored. Deletes what the account keeps beyond its share, now and then. */
  added(account: string, bytes: number): Promise<void>;
}

/** The sum of all accounts is checked after each part (1 / PART) of what they may keep together. */
const PART = 16;

const SQL = loadStatements(import.meta.url, './sql/responses.sql', ['sizesOfAccounts', 'deleteExcess']);

export function createResponseRoom({ database, limits, secret, now }: KeptResponsesOptions): ResponseRoom {
  const { accountBytesMax, accountCountMax, bytesMax } = limits;
  const texts = createSealedTexts(secret);
  const added = createKeptBytes(accountBytesMax);
  const ownerOf = (account: string) => `response of ${account}`;

  /** The most that one account may keep, as of the last check of all. */
  let share = accountBytesMax;
  /** The same for accounts that never had money, and those of them that the last check found, if it is less. */
  let unfundedShare = accountBytesMax;
  let unfunded = new Set<string>();
  const shareOf = (account: string): number => (unfunded.has(account) ? unfundedShare : share);
  // The first response checks all: the limits may be lower than before.
  let written = bytesMax;

  const deleteExcess = (account: string) =>
    database.query(SQL.deleteExcess, [account, shareOf(account), accountCountMax, now()]);

  /** Finds the share with which a response of this size fits in, and deletes what each account keeps beyond it. */
  async function checkAll(writer: string, more: number): Promise<void> {
    written = 0;
    const rows = await database.query(SQL.sizesOfAccounts);
    const sizes = new Map(rows.map(({ account, bytes }) => [account as string, Number(bytes)]));
    const after = new Map(sizes).set(writer, (sizes.get(writer) ?? 0) + more);
    const room = Math.floor(bytesMax - (2 * bytesMax) / PART);
    // Accounts of wallets cost nothing, so those that never had money are one party, however many they are.
    unfunded = new Set(rows.flatMap((row) => (Number(row['unfunded']) === 1 ? [row['account'] as string] : [])));
    const free = [...unfunded].map((account) => after.get(account)!);
    const paid = [...after].flatMap(([account, size]) => (unfunded.has(account) ? [] : [size]));
    const freeSum = free.reduce((sum, size) => sum + size, 0);
    const party = largestShare([...paid, freeSum], room);
    share = Math.min(accountBytesMax, party);
    unfundedShare = Math.min(accountBytesMax, largestShare(free, party));
    for (const [account, bytes] of sizes) if (bytes > shareOf(account)) await deleteExcess(account);
    if (unfundedShare >= share) unfunded.clear();
  }

  return {
    seal: (account, text) => texts.seal(ownerOf(account), text),
    open: (account, sealed) => texts.open(ownerOf(account), sealed),
    async fits(account, bytes) {
      // One that does not fit counts too: the share may have grown since the last check.
      written += bytes;
      if (written * PART >= bytesMax) await checkAll(account, bytes);
      return bytes <= shareOf(account);
    },
    async added(account, bytes) {
      // A response counts at least as much as one of the most that an account may have.
      if (added.add(account, Math.max(bytes, accountBytesMax / accountCountMax))) await deleteExcess(account);
    },
  };
}

/**
 * The largest share with which accounts of these sizes fit into `room`, if those with more are cut to it. So who keeps
 * little keeps all of it, however much others keep.
 */
function largestShare(sizes: readonly number[], room: number): number {
  let roomLeft = room;
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(roomLeft / (sizes.length - index));
    if (size > share) return share;
    roomLeft -= size;
  }
  return Infinity;
}
