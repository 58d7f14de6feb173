import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openDatabase, type OpenDatabase, DatabaseError } from '#store';
import {
  audit,
  compareJournal,
  EMBEDDED_CHAIN,
  hasOldBooks,
  journalHead,
  type AuditCheck,
  type AuditOptions,
  type LedgerBatch,
  createLedger,
  expireOrphans,
  type JournalHead,
} from '#billing/compose';
import { LOST, type AuditReport, type Ledger } from '#billing';
import type { Config } from '#config';
import { COMPARE_TEMPORARY, compareSums } from '#analytics';
import { databaseName } from '#store/database-name';
import { deniedTo, giveToOwner } from '#store/owner';
import { identityOf, noteIdentity, refuseOtherIdentity } from './known-identity.ts';
import type { Identity } from '#auth/identity';

/* The guard of the journal against loss: `journal-head.json` remembers how far the journal of a database went. */

/** The database and the identity whose journal is guarded. */
type GuardedJournal = Pick<Config, 'dataDir' | 'databaseUrl' | 'identitySeed'>;

/** A head that the journal of a database once had, as stored in the data directory. */
interface RememberedHead extends JournalHead {
  /** RFC 3339. */
  readonly at: string;
}

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
interface JournalFile {
  /**
   * null if the file has no entry for this database. Throws JournalLost if the file cannot be read, or if this identity
   * did not write the entry.
   */
  read(): RememberedHead | null;
  /** Durable when it resolves, with the entry. */
  write(head: JournalHead, at: number): Promise<RememberedHead>;
  /** Removes the entry of this database. */
  remove(): Promise<void>;
  /** Removes the file if it cannot be read, with the entries of all databases. The other methods then work again. */
  removeUnreadable(): void;
}

export function openJournalFile({ dataDir, databaseUrl, identitySeed }: GuardedJournal): JournalFile {
  const name = databaseName(databaseUrl);
  const path = journalFile(dataDir);
  const mac = ({ chain, n, hash, at }: RememberedHead): string => {
    return createHmac('sha256', identityOf({ identitySeed, dataDir }).secret('journal head'))
      .update(JSON.stringify([name, chain, n, hash, at]))
      .digest('hex');
  };
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
      const { mac: given, ...head } = Object(entry) as RememberedHead & { readonly mac: unknown };
      const expected = Buffer.from(mac(head));
      const found = Buffer.from(typeof given === 'string' ? given : '');
      if (found.byteLength === expected.byteLength && timingSafeEqual(found, expected)) return head;
      throw new JournalLost(
        `${path} was not written with the identity of this gateway, or was changed since.\n` +
          `Use the identity that the database belongs to: identity.json of its data directory, or TOLLGATE_IDENTITY_SEED as its gateway has it.\n${ACCEPT}`,
      );
    },
    async write(head, at) {
      const entry = { chain: head.chain, n: head.n, hash: head.hash, at: new Date(at).toISOString() };
      await save({ ...readEntries(path), [name]: { ...entry, mac: mac(entry) } });
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
const ACCEPT =
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

/**
 * Keeps `journal-head.json` near the end of the journal. The file is a lower bound: the journal may have up to one
 * second of later operations.
 */
interface JournalWatch {
  /**
   * Wraps `told`: the result passes every batch to it and notes the batch. The file is written about a second later. A
   * write that failed is tried again every second.
   */
  noting(told: (batch: LedgerBatch) => void): (batch: LedgerBatch) => void;
  /** Writes the file for the last time. Later batches are not noted. */
  close(): Promise<void>;
}

const EVERY_MS = 1_000;

interface JournalWatchOptions {
  readonly config: GuardedJournal;
  readonly database: OpenDatabase;
  readonly now: () => number;
  /**
   * Called at the first failure to write the file, and again only after a write has succeeded. DatabaseError
   * LOST: the database lacks what the file names, so the file is kept.
   */
  readonly onError: (error: unknown) => void;
}

interface JournaledOptions {
  readonly config: GuardedJournal;
  readonly logger: { warn(fields: object, text: string): void };
  readonly opened: AsyncDisposableStack;
  readonly now: () => number;
}

interface Journaled {
  readonly database: OpenDatabase;
  readonly journal: JournalWatch;
}

/**
 * Opens the database and the watch of its journal. `opened` closes both. Rejects with JournalLost if the database is
 * missing, or if its journal lacks the batch that `journal-head.json` names. A gateway also gets its identity, and
 * rejects with IdentityError if the database belongs to another one.
 */
export async function openJournaled(
  options: JournaledOptions & { readonly isGateway: true },
): Promise<Journaled & { readonly identity: Identity }>;
export async function openJournaled(options: JournaledOptions): Promise<Journaled>;
export async function openJournaled({
  config,
  logger,
  opened,
  now,
  isGateway = false,
}: JournaledOptions & { readonly isGateway?: boolean }): Promise<Journaled & { readonly identity?: Identity }> {
  refuseMissingDatabase(config);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  opened.defer(() => database.close());
  const identity = isGateway ? identityOf(config) : null;
  // Before `journal-head.json` is written with it.
  if (identity !== null) await refuseOtherIdentity(database, identity);
  const onError = (error: unknown) =>
    logger.warn(
      { err: error },
      error instanceof DatabaseError && error.code === LOST
        ? 'the database lacks operations that were acknowledged: journal-head.json is left as it is, and the next start asks what to do'
        : 'journal-head.json cannot be written: until it can, the gateway would not notice a loss of new records',
    );
  const journal = await watchJournal({ config, database, now, onError });
  opened.defer(() => journal.close());
  // After the journal was compared, which an identity of before has authenticated.
  if (identity !== null) await noteIdentity(database, identity, now());
  await auditOldBooks(database, logger);
  return { database, journal, ...(identity === null ? {} : { identity }) };
}

/**
 * Audits a data directory that is older than the ledger's log, once, before the log begins. Until then its tables are
 * the books. The warning shows that a difference is older than the log.
 */
async function auditOldBooks(
  database: OpenDatabase,
  logger: { warn(fields: object, text: string): void },
): Promise<void> {
  if (!(await hasOldBooks(database))) return;
  const { ok, checks } = await audit(database, { overdueMs: null });
  const failed = checks.filter((check) => !check.ok).map(({ name, detail }) => ({ check: name, detail }));
  if (!ok)
    logger.warn({ failed }, "the books have differences that are older than the ledger's log: see `tollgate audit`");
}

async function watchJournal(options: JournalWatchOptions): Promise<JournalWatch> {
  const { config, database, now, onError } = options;
  const file = openJournalFile(config);
  const remembered = file.read();
  if (remembered) {
    const loss = await lossOf(database, remembered);
    if (loss !== null) throw new JournalLost(`${loss}\nRestore the newest copy of the database.\n${ACCEPT}`);
  }

  let last: RememberedHead | null = remembered;
  let chain: string | null = remembered === null && database.engine === 'sqlite' ? EMBEDDED_CHAIN : null;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  let failing = false;
  let closed = false;
  const write = async () => {
    timer = null;
    if (chain === null) return;
    const noted = chain;
    chain = null;
    try {
      const head = await journalHead(database, noted);
      // PostgreSQL may be another server than before, since a failover to a standby that had not received everything.
      const loss = last === null || database.engine === 'sqlite' ? null : await lossOf(database, last);
      if (loss !== null) throw new DatabaseError(loss, { code: LOST });
      last = await file.write(head, now());
      failing = false;
    } catch (error) {
      if (!failing) onError(error);
      failing = true;
      chain ??= noted;
      writeSoon();
    }
  };
  const writeSoon = () => {
    if (closed || timer !== null) return;
    timer = setTimeout(() => {
      writing = writing.then(write);
    }, EVERY_MS).unref();
  };
  // The file is written at the first start already, so that a database that is emptied before its first operation is
  // noticed too.
  await write();

  return {
    noting: (told) => (batch) => {
      told(batch);
      chain = batch.chain;
      writeSoon();
    },
    async close() {
      closed = true;
      if (timer) clearTimeout(timer);
      await writing;
      await write();
    },
  };
}

/**
 * Audits the books, with two more checks. One compares the sums of analytics with the ledger. The other checks that the
 * journal has the batch that `journal-head.json` names.
 */
export async function auditWithJournal(
  config: GuardedJournal,
  database: OpenDatabase,
  options: AuditOptions,
): Promise<AuditReport> {
  const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
  const archives = [...(options.archives ?? []), join(config.dataDir, 'archives')];
  const report = await audit(database, { ...options, also, archives });
  const check = await checkJournal(openJournalFile(config), config.dataDir, database);
  return { ...report, ok: report.ok && check.ok, checks: [...report.checks, check] };
}

async function checkJournal(file: JournalFile, dataDir: string, database: OpenDatabase): Promise<AuditCheck> {
  const name = 'journal head';
  try {
    const remembered = file.read();
    if (remembered === null)
      return { name, ok: true, detail: `${journalFile(dataDir)} remembers nothing of this database` };
    const loss = await lossOf(database, remembered);
    return {
      name,
      ok: loss === null,
      detail: loss ?? `the journal has batch ${remembered.n}, as remembered at ${remembered.at}`,
    };
  } catch (error) {
    if (error instanceof JournalLost) return { name, ok: false, detail: error.message.split('\n')[0]! };
    throw error;
  }
}

/** A text that says what the database lacks, for the operator. null if the journal has the remembered batch. */
export async function lossOf(database: OpenDatabase, remembered: RememberedHead): Promise<string | null> {
  const { chain, n, at } = remembered;
  const found = await compareJournal(database, remembered);
  if (found.state === 'there') return null;
  const known = `This gateway has written batch ${n} of the journal (chain ${chain}, known since ${at})`;
  return found.state === 'behind'
    ? `${known}, and the database ends at batch ${found.end}: operations that were acknowledged are missing.`
    : `${known}, and the database has another batch ${n}: it is another database, or was restored and written to since.`;
}

/**
 * Opens the ledger of a database, with the guard of its journal. `onBatch` gets every batch of operations that the
 * ledger commits.
 */
export async function openLedger(
  {
    database,
    journal,
    opened,
    now,
  }: {
    readonly database: OpenDatabase;
    readonly journal: JournalWatch;
    readonly opened: AsyncDisposableStack;
    readonly now: () => number;
  },
  onBatch: (batch: LedgerBatch) => void,
): Promise<Ledger> {
  const ledger = await createLedger({ database, now, onBatch: journal.noting(onBatch) });
  opened.defer(() => ledger.close());
  // No other process can have the embedded database open, so every lock that is held now belongs to a call that died
  // with its process.
  if (database.engine === 'sqlite') await expireOrphans(ledger);
  return ledger;
}

// Not from `#auth`, because a command would then load a whole gateway to read one file.
