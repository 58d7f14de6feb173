export type { Batch, Batches, LineCalls, LineError, LineReply, Measured } from './batch.ts';
export { type BatchRunner, createBatchRunner } from './batch-runner.ts';
export { createBatchMoney } from './batch-money.ts';
export { linePlaces } from './batch-places.ts';
export { createBatches } from './create-batches.ts';
export { createFiles } from './create-files.ts';
export type { StoredFile, StoredFiles } from './file.ts';
export {
  type HeldRequest,
  locksUntil,
  type ProviderApi,
  ProviderFailure,
  type ProviderPlace,
  type RemoteBatch,
} from './provider-api.ts';
export { ProviderQueues } from './provider-queues.ts';
export { createSealedContent } from './sealed-content.ts';
