import { join } from 'node:path';
import type { Query } from '#store';
import { digestOfFile } from './archive-file.ts';
import { closingChains, digestOfClosing, digestOfSpending, digestOfTransfers, type ChainEnd } from './closing-rows.ts';
import { registeredArchives, type RegisteredArchive } from './registered.ts';

/** The archives of a database, and where the books begin after the newest. */
export interface Newest {
  readonly archives: readonly RegisteredArchive[];
  readonly chains: ReadonlyMap<string, ChainEnd>;
}

export async function readNewest(query: Query): Promise<Newest> {
  const archives = await registeredArchives(query);
  const chains = await closingChains(query, archives.length === 0 ? 0 : archives.at(-1)!.number);
  return { archives, chains: new Map(archives.length === 0 ? [] : chains.map((end) => [end.chain, end])) };
}

/**
 * Compares what the database knows of its archives with their digests, and each file that is at hand with its own. A
 * file was verified as a whole before its digest was registered. null without archives. Files are looked for where
 * they were written, and in `folders`.
 */
export async function auditArchives(
  query: Query,
  { archives }: Newest,
  folders: readonly string[],
): Promise<{ readonly problems: readonly string[]; readonly fine: string } | null> {
  const newest = archives.at(-1);
  if (newest === undefined) return null;
  const problems: string[] = [];
  const away: string[] = [];
  let before = { number: 0, endsAt: 0 };
  for (const archive of archives) {
    const { number, name, beginsAt, endsAt } = archive;
    if (number !== before.number + 1 || beginsAt !== before.endsAt)
      problems.push(`archive ${number} does not follow archive ${before.number}`);
    before = { number, endsAt };
    if ((await digestOfSpending(query, number)) !== archive.spending)
      problems.push(`the spending of archive ${number} was changed since`);
    if ((await digestOfTransfers(query, beginsAt, endsAt)) !== archive.transfers)
      problems.push(`a transfer of the time of archive ${number} was changed, added or removed since`);
    const file = await findFile(archive, folders);
    if (file === null) away.push(name);
    else if (file.sha256 !== archive.sha256) problems.push(`${file.path} is not the file that was archived`);
  }
  if ((await digestOfClosing(query, newest.number)) !== newest.closing)
    problems.push(`the balances at the end of archive ${newest.number} were changed since`);
  const day = new Date(newest.endsAt).toISOString().slice(0, 10);
  const missing =
    away.length === 0
      ? ''
      : `; not at hand, and not looked at: ${away.join(', ')} (looked in ${foldersOf(archives, folders).join(', ')})`;
  const count = archives.length === 1 ? '1 archive has' : `${archives.length} archives have`;
  return { problems, fine: `${count} all before ${day}, and the books go on from there${missing}` };
}

const foldersOf = (archives: readonly RegisteredArchive[], folders: readonly string[]): readonly string[] => [
  ...new Set([...archives.map(({ folder }) => folder), ...folders]),
];

/** The file of an archive, where it was written or in one of `folders`; null if it is in none. */
export async function findFile(
  archive: RegisteredArchive,
  folders: readonly string[],
): Promise<{ readonly path: string; readonly sha256: string } | null> {
  for (const folder of foldersOf([archive], folders)) {
    const path = join(folder, archive.name);
    const digest = await digestOfFile(path);
    if (digest !== null) return { path, ...digest };
  }
  return null;
}
