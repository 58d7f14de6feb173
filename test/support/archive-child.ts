import { openDatabase } from '#store';
import { aDay, archiveBefore, createClock, dayAt, openBooks } from './archived-books.ts';

/* `make` writes books of some days into a database, and `archive` or `keep` archives what is before day 30. The
   database is a data directory or the address of one. The process may be killed at a step: what tells it at which
   is its environment. */
const [what, place, folder] = process.argv.slice(2) as [string, string, string];
const isUrl = place.startsWith('postgres');
const database = await openDatabase(isUrl ? { url: place, dataDir: '' } : { dataDir: place });
const clock = createClock();
if (what === 'make') {
  const ledger = await openBooks(database, clock);
  for (const day of [0, 1, 2, 40]) await aDay(ledger, clock, day);
  await ledger.close();
} else {
  clock.at = dayAt(80);
  const { archive } = await archiveBefore(database, folder, clock, 30, { keep: what === 'keep' });
  process.stdout.write(archive!.sha256);
}
await database.close();
