export {
  type Database,
  DatabaseError,
  type Query,
  type Row,
  type RunProgram,
  type Statement,
  type Step,
  type Value,
} from './database.ts';
export type { Follower } from './log/follow.ts';
export type { LedgerLog } from './log/ledger-log.ts';
export { GENESIS, isIntact, type LogHead, type LogRecord } from './log/record.ts';
export { findRecord, readRecords } from './log/reader.ts';
export { BUCKET_HOLDER, isMediaId, MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from './media-folder.ts';
export { createDueWorker, type DueWorker } from './due-worker.ts';
export { openDatabase, type OpenDatabase } from './open.ts';
export type { PostgresSession } from './postgres-session.ts';
export type { PostgresDatabase } from './postgres.ts';
export { connectRedis, type RedisClient } from './redis.ts';
export type { Prepare } from './sqlite-worker.ts';
export type { SqliteDatabase } from './sqlite.ts';
export { isOne, listParam, numberOrNull, rowReader } from './row-reader.ts';
export { loadStatement, loadStatements } from './statement.ts';
