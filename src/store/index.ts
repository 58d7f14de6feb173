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
export { BUCKET_HOLDER, isMediaId, MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from './owner.ts';
export { createDueWorker, type DueWorker } from './due-worker.ts';
export { openDatabase, type OpenDatabase, type SqliteDatabase } from './open.ts';
export type { PostgresSession, PostgresDatabase } from './postgres.ts';
export { connectRedis, type RedisClient } from './redis.ts';
export type { Prepare } from './sqlite-worker.ts';
export { isOne, listParam, numberOrNull, rowReader, loadStatement, loadStatements } from './statement.ts';
