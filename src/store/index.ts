export * from './database.ts';
export { databaseName } from './database-name.ts';
export { loadStatement } from './statement.ts';
export { openDatabase, type OpenDatabase } from './open.ts';
export type { SqliteDatabase } from './sqlite.ts';
export type { PostgresDatabase } from './postgres.ts';
export type { PostgresSession } from './postgres-session.ts';
export type { Prepare, Program } from './sqlite-worker.ts';
export { connectRedis, type RedisClient, type RedisOptions } from './redis.ts';
