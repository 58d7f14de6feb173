export {
  type Blob,
  BlobUnreachable,
  type Blobs,
  type BlobWriter,
  type ByteRange,
  FileTooLarge,
  type WantedRoom,
} from './blobs/blob.ts';
export { type Around, createKeptReplies, type KeptReplies } from './blobs/kept-replies.ts';
export { type Piece, pieceLength, rangeOf, writePieces } from './blobs/pieces.ts';
export { openBlobFiles } from './blobs/blob-files.ts';
export { createBlobs, removeOrphans, sourceOf } from './blobs/create-blobs.ts';
export { openS3Files } from './blobs/s3-files.ts';
export { createFarBlobs, giveFile, tellHolder } from './blobs/far-blobs.ts';
export { countLiveTasks, createTasks, type KeptTasks, type CallCost, type TaskCost } from './create-tasks.ts';
export { type BudgetNotices, createBudgetNotices } from './notices/budget-notices.ts';
export { createKeptResponses } from './responses/create-kept-responses.ts';
export type {
  KeptContent,
  KeptResponse,
  KeptResponses,
  NewKeptResponse,
  ReadContent,
  KeptEvents,
  RunningEnd,
  RunningResponses,
  RunState,
} from './responses/kept-response.ts';
export { createSessionStore, type SessionStore, type StoredSession } from './session-store.ts';
export { POLL_MS } from './poll-scheduler.ts';
export { isStorable, sees } from './task-rows.ts';
export {
  type TaskSink,
  type Poll,
  type PollAtExpiry,
  ownerOf,
  type SeenTask,
  type Observation,
  type Task,
  type TaskKey,
  type TaskOwner,
  type Tasks,
  waitsForClient,
} from './task.ts';
export { createTaskWatch, type TaskWatch, type TaskWatchOptions } from './watch.ts';
export {
  type Webhook,
  WEBHOOK_BODY_BYTES_MAX,
  WEBHOOK_NAME_CHARS_MAX,
  type WebhookContent,
  type WebhookEvent,
  WEBHOOKS_PER_TASK_MAX,
} from './webhooks/webhook.ts';
export { createWebhooks, type Webhooks } from './webhooks/webhooks.ts';
