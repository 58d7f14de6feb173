/* What a program in the database's thread needs of the journal, without the rest of the room. */
export { type JournalPlace, type ResolvedIds, resolvedInGroups, resolvedInLog } from './resolved-ids.ts';
