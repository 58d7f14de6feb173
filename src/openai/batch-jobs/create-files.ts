import { randomBytes } from 'node:crypto';
import { loadStatements, rowReader, type Database, type Row, type Step } from '#store';
import { GatewayError } from '#errors';
import { limitText, sees, type TaskOwner } from '#tasks';
import { UNPAID } from './batch-places.ts';
import type { FileLimits, StoredFile, StoredFiles } from './file.ts';
import type { SealedContent } from './sealed-content.ts';

interface FilesOptions {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly content: SealedContent;
  readonly limits: FileLimits;
  readonly now: () => number;
}

/** A part of a file is about this large, and is all that is in memory of it. It ends with a line if it has one. */
const PART_BYTES = 256 * 1024;
/** A part without the end of a line has at most so many bytes, and those of one chunk. */
const PART_BYTES_MAX = 1024 * 1024;
/** The sum of all files is asked for once in so many parts. */
const PARTS_UNCHECKED = 16;
/** Parts or results are read from the database together up to so many, and so many bytes; a larger one alone. */
const READ_COUNT = 64;
const READ_BYTES = 1024 * 1024;
/** An upload that makes no progress for this long has died with its gateway. */
const WRITING_MS = 600_000;
/** Bytes of a row of a file without its parts. */
const ROW_BYTES = 512;
/** Accounts without money get this part of the room together (1 / FREE_PART). */
const FREE_PART = 4;
const NEWLINE = 10;
const FULL_RETRY_S = 60;

const SQL = loadStatements(import.meta.url, './sql/files.sql', [
  'addPart',
  'deleteFile',
  'deleteResults',
  'dropUnwritten',
  'expiredResults',
  'findFile',
  'growFile',
  'hasMoney',
  'listFiles',
  'partsAfter',
  'partSizesAfter',
  'putFile',
  'resultsAfter',
  'resultSizesAfter',
  'roomOfFiles',
  'storeFile',
  'sweepFiles',
]);

export const newFileId = (): string => `file-${randomBytes(16).toString('hex')}`;

export function createFiles({ database, content, limits, now }: FilesOptions): StoredFiles {
  /** Rejects with GatewayError if the owner, its account, or all accounts together have more than they may. */
  async function refuseExcess({ account, within }: TaskOwner, more: { readonly files: number }): Promise<void> {
    const [row] = await database.query(SQL.roomOfFiles, [account, within]);
    const { own, part, total, free, files, partFiles } = toRoom(row!);
    if (files + partFiles + more.files > 2 * limits.accountCountMax)
      throw full(`${limitText(within, limits.accountCountMax, 'files')}: delete some`);
    if (own + part > 2 * limits.accountBytesMax)
      throw full(
        `The files and batches of this ${within === null ? 'account' : 'key'} would take more than ${within === null ? '' : 'its share of '}${limits.accountBytesMax} bytes: delete files, or wait until old batches are deleted`,
      );
    // No account gets more than what is left for others, so no number of accounts takes all.
    if (own > limits.bytesMax - total)
      throw new GatewayError('service_unavailable', 'This gateway has no room for more files at the moment', {
        retryAfterS: FULL_RETRY_S,
      });
    const freeMax = limits.freeBytesMax ?? Math.floor(limits.bytesMax / FREE_PART);
    if (own > freeMax - free && !(await hasMoney(account)))
      throw full(
        `The files of accounts without money take ${free} of ${freeMax} bytes (batches.free_bytes_max), which leaves too little for this one: add money to the account, or retry later`,
      );
  }

  const hasMoney = async (account: string): Promise<boolean> =>
    (await database.query(SQL.hasMoney, [account])).length > 0;

  async function addPart(id: string, owner: TaskOwner, n: number, bytes: Uint8Array): Promise<void> {
    const sealed = await content.seal(owner.account, bytes);
    const steps: Step[] = [
      { statement: SQL.growFile, params: [id, sealed.byteLength, now() + WRITING_MS] },
      { statement: SQL.addPart, params: [id, n, sealed] },
    ];
    await database.batch(steps);
    if (n % PARTS_UNCHECKED === 0) await refuseExcess(owner, { files: 0 });
  }

  const toFile = (row: Row): StoredFile => {
    const { name, ...file } = readFile(row);
    return { ...file, name: content.openText(file.account, name) ?? 'unreadable' };
  };

  async function find(id: string, owner: TaskOwner): Promise<StoredFile | null> {
    const [row] = await database.query(SQL.findFile, [id, owner.account, now()]);
    const storedFile = row === undefined ? null : toFile(row);
    return storedFile !== null && sees(storedFile, owner) ? storedFile : null;
  }

  return {
    admit: (owner) => refuseExcess(owner, { files: 1 }),
    shareOf: async (account) => ((await hasMoney(account)) ? account : UNPAID),
    find,

    async write(owner, { name, content: chunks, holds, keepMs }) {
      const { account, within } = owner;
      const id = newFileId();
      const at = now();
      const sealedName = content.sealText(account, name);
      await database.query(SQL.putFile, [id, account, within, 'batch', sealedName, ROW_BYTES, at, at + WRITING_MS]);
      try {
        await refuseExcess(owner, { files: 0 });
        let bytes = 0;
        let n = 0;
        for await (const part of partsOf(bounded(chunks, limits.fileBytesMax), holds)) {
          bytes += part.byteLength;
          await addPart(id, owner, n++, part);
        }
        if (n > 1) await refuseExcess(owner, { files: 0 });
        const expiresAt = at + (await keepMs());
        const stored = await database.query(SQL.storeFile, [id, bytes, expiresAt]);
        if (stored.length === 0) throw new GatewayError('request_timeout', 'The file took too long to arrive');
        return {
          id,
          account,
          within,
          purpose: 'batch',
          name,
          bytes,
          batch: null,
          results: null,
          createdAt: at,
          expiresAt,
        };
      } catch (error) {
        await database.query(SQL.dropUnwritten, [id]).catch(() => {});
        throw error;
      }
    },

    async list(owner, { after, limit, order, purpose }) {
      const before = after === null ? null : await find(after, owner);
      if (after !== null && before === null) return null;
      const rows = await database.query(SQL.listFiles, [
        owner.account,
        now(),
        owner.within,
        order === 'desc' ? 1 : 0,
        before?.createdAt ?? 0,
        before?.id ?? null,
        purpose,
        limit + 1,
      ]);
      return { entries: rows.slice(0, limit).map(toFile), hasMore: rows.length > limit };
    },

    read: (file, holds) => contentOf(database, content, file, holds),

    async delete({ id, account, batch, results }) {
      const [deleted] = await database.batch([
        { statement: SQL.deleteFile, params: [id, account] },
        ...(batch === null ? [] : [{ statement: SQL.deleteResults, params: [batch, results] }]),
      ]);
      return deleted!.length > 0;
    },

    async sweep(limit) {
      const at = now();
      for (const { batch, results } of await database.query(SQL.expiredResults, [at, limit]))
        await database.query(SQL.deleteResults, [batch!, results!]);
      return (await database.query(SQL.sweepFiles, [at, limit])).length;
    },
  };
}

async function* contentOf(
  database: Pick<Database, 'query'>,
  content: SealedContent,
  { id, account, batch, results }: Parameters<StoredFiles['read']>[0],
  holds: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  const [sizesAfter, rowsAfter, ownerParameters] =
    batch === null
      ? [SQL.partSizesAfter, SQL.partsAfter, [id]]
      : [SQL.resultSizesAfter, SQL.resultsAfter, [batch, results]];
  for (let n = -1; ;) {
    const sizes = (await database.query(sizesAfter, [...ownerParameters, n, READ_COUNT])).map(({ size }) =>
      Number(size),
    );
    if (sizes.length === 0) return;
    let count = 1;
    let bytes = sizes[0]!;
    // Those that are small are bounded by the number of those who read.
    holds(bytes > READ_BYTES ? 2 * bytes : 0);
    while (count < sizes.length && bytes + sizes[count]! <= READ_BYTES) bytes += sizes[count++]!;
    for (const row of await database.query(rowsAfter, [...ownerParameters, n, count])) {
      n = Number(row['n']);
      yield* content.pieces(account, row['content'] as Uint8Array);
    }
  }
}

const full = (message: string) => new GatewayError('rate_limit_exceeded', message, { retryAfterS: FULL_RETRY_S });

async function* bounded(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax)
      throw new GatewayError(
        'payload_too_large',
        `The file is larger than ${bytesMax} bytes (batches.file_bytes_max)`,
        {
          param: 'file',
        },
      );
    yield chunk;
  }
}

/** Cuts content into parts of about PART_BYTES, after lines where it has some. */
async function* partsOf(
  chunks: AsyncIterable<Uint8Array>,
  holds: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let end = 0;
  for await (const chunk of chunks) {
    const newline = chunk.lastIndexOf(NEWLINE);
    if (newline !== -1) end = bytes + newline + 1;
    held.push(chunk);
    bytes += chunk.byteLength;
    // A part is in memory twice when it is put together.
    holds(2 * bytes);
    if (bytes < PART_BYTES || (end === 0 && bytes < PART_BYTES_MAX)) continue;
    const whole = Buffer.concat(held, bytes);
    const cut = end === 0 ? bytes : end;
    yield whole.subarray(0, cut);
    held = [whole.subarray(cut)];
    bytes -= cut;
    end = 0;
  }
  if (bytes > 0) yield Buffer.concat(held, bytes);
}

const toRoom = rowReader<{
  readonly own: number;
  readonly part: number;
  readonly total: number;
  readonly free: number;
  readonly files: number;
  readonly partFiles: number;
}>({
  own: Number,
  part: Number,
  total: Number,
  free: Number,
  files: Number,
  partFiles: Number,
});

const readFile = rowReader<StoredFile>(
  {
    bytes: Number,
    createdAt: Number,
    expiresAt: Number,
  },
  { part: 'within' },
);
