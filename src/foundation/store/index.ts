export {
  BUSY,
  CROWDED,
  type Database,
  DatabaseError,
  type Query,
  type Row,
  type RunProgram,
  type Statement,
  type Step,
  type Value,
} from './database.ts';
export { type DueWorker, createDueWorker } from './due-worker.ts';
export type { LedgerLog } from './log/ledger-log.ts';
export { findRecord, readRecords } from './log/reader.ts';
export { GENESIS, type LogHead, type LogRecord, isIntact } from './log/record.ts';
export { type OpenDatabase, type SqliteDatabase, openDatabase } from './open.ts';
export { BUCKET_HOLDER, MEDIA_FOLDER, MEDIA_HOLDER, isMediaId, mediaPath } from './owner.ts';
export type { PostgresDatabase, PostgresSession } from './postgres.ts';
export { type RedisClient, connectRedis } from './redis.ts';
export { type SharedClock, createSharedClock, followDatabase } from './shared-clock.ts';
export type { Prepare } from './statement.ts';
export { isOne, listParam, loadStatements, numberOrNull, rowReader, rowsParam } from './statement.ts';
