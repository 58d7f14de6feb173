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
  /**
   * Called after a response of this size was stored. Deletes what accounts keep beyond their share, now and then.
   * Resolves with false if the response is more than the share of its account, and was deleted.
   */
  added(account: string, bytes: number): Promise<boolean>;
}

/** The sum of all accounts is checked after each part (1 / PART) of what they may keep together. */
const PART = 16;

const SIZES = loadStatement(import.meta.url, './sql/sizes-of-accounts.sql');
const DELETE_EXCESS = loadStatement(import.meta.url, './sql/delete-excess.sql');

export function createResponseRoom({ database, limits, secret, now }: KeptResponsesOptions): ResponseRoom {
  const { accountBytesMax, accountCountMax, bytesMax } = limits;
  const texts = createSealedTexts(secret);
  const added = createKeptBytes(accountBytesMax);
  const ownerOf = (account: string) => `response of ${account}`;

  /** The most that one account may keep, as of the last check of all. */
  let share = accountBytesMax;
  // The first response checks all: the limits may be lower than before.
  let written = bytesMax;

  const deleteExcess = (account: string) => database.query(DELETE_EXCESS, [account, share, accountCountMax, now()]);

  /** Finds the share of an account, and deletes what each one keeps beyond it. */
  async function checkAll(): Promise<void> {
    written = 0;
    const sizes = (await database.query(SIZES)).map(
      ({ account, bytes }) => [account as string, Number(bytes)] as const,
    );
    const room = Math.floor(bytesMax - (2 * bytesMax) / PART);
    share = Math.min(
      accountBytesMax,
      largestShare(
        sizes.map(([, bytes]) => bytes),
        room,
      ),
    );
    // oxlint-disable-next-line no-await-in-loop -- one account after the other: others write meanwhile
    for (const [account, bytes] of sizes) if (bytes > share) await deleteExcess(account);
  }

  return {
    seal: (account, text) => texts.seal(ownerOf(account), text),
    open: (account, sealed) => texts.open(ownerOf(account), sealed),
    async added(account, bytes) {
      written += bytes;
      // A response counts at least as much as one of the most that an account may have.
      const isDue = added.add(account, Math.max(bytes, accountBytesMax / accountCountMax));
      if (written * PART >= bytesMax || bytes > share) await checkAll();
      if (isDue) await deleteExcess(account);
      return bytes <= share;
    },
  };
}

/**
 * The largest share with which accounts of these sizes fit into `room`, if those with more are cut to it. So who keeps
 * little keeps all of it, however much others keep.
 */
function largestShare(sizes: readonly number[], room: number): number {
  let left = room;
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(left / (sizes.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Infinity;
}
