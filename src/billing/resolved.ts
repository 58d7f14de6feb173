/* The journal's exports for programs in the database's thread, which must not load the whole room. */
export { type JournalPlace, type ResolvedIds, resolvedInGroups, resolvedInLog } from './resolved-ids.ts';
