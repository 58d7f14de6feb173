import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseError } from '#store';
import type { RememberedHead } from '#billing/compose';
import type { Config } from '#config';
import { databaseName } from '#store/database-name';
import { deniedTo, giveToOwner } from '#store/owner';
import { identityOf } from './known-identity.ts';

/* The guard of the journal against loss: `journal-head.json` remembers how far the journal of a database went. */

/** The database and the identity whose journal is guarded. */
export type GuardedJournal = Pick<Config, 'dataDir' | 'databaseUrl' | 'identitySeed' | 'secondIdentitySeed'>;

const FILE = 'journal-head.json';
const IDENTITY = 'identity.json';

/** The database lacks acknowledged operations, or is missing. `message` says what to do. */
export class JournalLost extends Error {
  override readonly name = 'JournalLost';
}

export const journalFile = (dataDir: string): string => join(dataDir, FILE);

/**
 * `journal-head.json` of a data directory. For each database it has a head that the journal once had. Because the file
 * is separate from the database, a truncated database, or an older copy in its place, is noticed. The identity
 * authenticates each entry.
 */
export interface JournalFile {
  /**
   * null if the file has no entry for this database. Throws JournalLost if the file cannot be read, or if this identity
   * did not write the entry.
   */
  read(): RememberedHead | null;
  /** Durable when it resolves, with the entry. */
  write(head: Omit<RememberedHead, 'at'>, at: number): Promise<RememberedHead>;
  /** Removes the entry of this database. */
  remove(): Promise<void>;
  /** Removes the file if it cannot be read, with the entries of all databases. The other methods then work again. */
  removeUnreadable(): void;
}

export function openJournalFile(config: GuardedJournal): JournalFile {
  const { dataDir, databaseUrl, identitySeed } = config;
  const name = databaseName(databaseUrl);
  const path = journalFile(dataDir);
  /** By the present seed, and by the previous one while it is configured. */
  const macs = ({ chain, n, hash, at }: RememberedHead): readonly string[] =>
    identityOf(config)
      .accepted('journal head')
      .map((key) =>
        createHmac('sha256', key)
          .update(JSON.stringify([name, chain, n, hash, at]))
          .digest('hex'),
      );
  const save = async (entries: Readonly<Record<string, unknown>>) => {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const draft = `${path}.${randomBytes(6).toString('hex')}`;
    const handle = await open(draft, 'wx', 0o600);
    try {
      giveToOwner(handle.fd, dataDir);
      await handle.writeFile(`${JSON.stringify(entries, null, 2)}\n`);
      await handle.sync();
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
    await rename(draft, path);
    if (process.platform !== 'win32') await syncFolder(dataDir);
  };
  return {
    read() {
      const entry = readEntries(path)[name];
      if (entry === undefined) return null;
      if (identitySeed === null && !existsSync(join(dataDir, IDENTITY)))
        throw new JournalLost(
          `${path} exists, but ${IDENTITY}, which authenticates it, is missing.\nRestore ${IDENTITY}, or set TOLLGATE_IDENTITY_SEED.\n${ACCEPT}`,
        );
      const { mac: macText, ...head } = Object(entry) as RememberedHead & { readonly mac: unknown };
      const macBytes = Buffer.from(typeof macText === 'string' ? macText : '');
      const isOwn = (expected: Buffer) =>
        macBytes.byteLength === expected.byteLength && timingSafeEqual(macBytes, expected);
      if (macs(head).some((each) => isOwn(Buffer.from(each)))) return head;
      throw new JournalLost(
        `${path} was not written with the identity of this gateway, or was changed since.\n` +
          `Use the identity that the database belongs to: identity.json of its data directory, or TOLLGATE_IDENTITY_SEED as its gateway has it.\n${ACCEPT}`,
      );
    },
    async write(head, at) {
      const entry = { chain: head.chain, n: head.n, hash: head.hash, at: new Date(at).toISOString() };
      await save({ ...readEntries(path), [name]: { ...entry, mac: macs(entry)[0]! } });
      return entry;
    },
    async remove() {
      const { [name]: _gone, ...rest } = readEntries(path);
      if (Object.keys(rest).length > 0) await save(rest);
      else rmSync(path, { force: true });
    },
    removeUnreadable() {
      try {
        readEntries(path);
      } catch {
        rmSync(path);
      }
    },
  };
}

/** The advice for an operator who accepts the loss. */
export const ACCEPT =
  'If you restored a backup on purpose, or want to begin again: "tollgate restored" shows what is missing, and "tollgate restored --accept" goes on without it.';

/**
 * Throws JournalLost if the embedded database is missing or empty in a directory where a gateway has run. Opening it
 * would begin new books under the old identity. Call this before openDatabase, which creates a missing file.
 */
export function refuseMissingDatabase({ dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>): void {
  if (databaseUrl !== null) return;
  const path = join(dataDir, 'tollgate.db');
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  const traces = [FILE, IDENTITY].filter((name) => existsSync(join(dataDir, name)));
  if (traces.length === 0) return;
  throw new JournalLost(
    `The database ${path} is ${existsSync(path) ? 'empty' : 'missing'}, but ${traces.join(' and ')} beside it ${traces.length > 1 ? 'say' : 'says'} that a gateway has run here.\n` +
      `Restore tollgate.db from a backup; or, if this gateway keeps its books in PostgreSQL, name it with DATABASE_URL.\n${ACCEPT}`,
  );
}

/** Makes the new name of a file durable. Windows has no call for this. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * The entries of the file by the name of the database. A missing file has no entries. Throws JournalLost if the file
 * cannot be parsed or is not a JSON object, and DatabaseError if this user may not read it.
 */
function readEntries(path: string): Readonly<Record<string, unknown>> {
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof content !== 'object' || content === null || Array.isArray(content))
      throw new TypeError('it is not a JSON object');
    return content as Record<string, unknown>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    // Nothing is lost then, so the advice is not to go on without it.
    const denied = deniedTo(error);
    if (denied !== null) throw new DatabaseError(denied, { code: 'unusable', cause: error });
    throw new JournalLost(
      `${path} cannot be read (${(error as Error).message}).\nRestore it with the database.\n${ACCEPT}`,
      { cause: error },
    );
  }
}
