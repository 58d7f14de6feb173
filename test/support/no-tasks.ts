import type { Tasks } from '#tasks';

const refused = () => Promise.reject(new Error('there are no tasks here'));

/** For rooms that are opened without storage for tasks. */
export const NO_TASKS: Tasks = {
  admit: () => Promise.resolve(),
  begin: refused,
  find: refused,
  ofCall: refused,
  liveStatesOf: refused,
  costOf: refused,
  findAll: refused,
  lastIn: refused,
  claim: refused,
  list: refused,
  saw: refused,
  forget: refused,
};
