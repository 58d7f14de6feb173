export { type EndCall, createEndCall } from './end-call.ts';
export { type KeptTasks, countLiveTasks, createTasks } from './create-tasks.ts';
export type { CallCost, TaskCost } from './task.ts';
export { POLL_MS } from './poll-scheduler.ts';
export { isStorable, sees } from './task-rows.ts';
export {
  type EndTask,
  type Observation,
  type TaskPoll,
  type PollAtExpiry,
  type SeenTask,
  type Task,
  type TaskKey,
  type TaskOwner,
  type TaskSink,
  type Tasks,
  limitText,
  ownerOf,
  waitsForClient,
} from './task.ts';
export { type TaskWatchOptions, createTaskWatch } from './watch.ts';
